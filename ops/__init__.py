"""The shell: settings, the one place that builds everything, the command, what a person sees."""
