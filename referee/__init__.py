"""Five referees over one kernel. Each bench is a package of its own and imports no other bench."""
