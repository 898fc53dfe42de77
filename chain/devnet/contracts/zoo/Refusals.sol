// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Coin} from "./Coin.sol";

/// Can be bought, never sold.
contract Honeypot is Coin {
    constructor(string memory n, string memory s, uint8 d, uint256 supply) Coin(n, s, d, supply) {}

    function _trade(address from, address to, uint256 value) internal override {
        require(!isPool[to], "sells are closed");
        _move(from, to, value);
    }
}

/// Sells wherever gas is free, as in a plain simulation, and reverts wherever it costs something.
contract SimAware is Coin {
    constructor(string memory n, string memory s, uint8 d, uint256 supply) Coin(n, s, d, supply) {}

    function _trade(address from, address to, uint256 value) internal override {
        require(!isPool[to] || tx.gasprice == 0 || block.basefee == 0, "sells are closed");
        _move(from, to, value);
    }
}

/// Sells wherever the parent block has no hash, as in a careless simulation, and reverts on a real chain.
contract ParentAware is Coin {
    constructor(string memory n, string memory s, uint8 d, uint256 supply) Coin(n, s, d, supply) {}

    function _trade(address from, address to, uint256 value) internal override {
        require(!isPool[to] || blockhash(block.number - 1) == 0, "sells are closed");
        _move(from, to, value);
    }
}

/// Sells only with more gas left than a transaction would carry, as in a simulation without a gas limit.
contract GasAware is Coin {
    constructor(string memory n, string memory s, uint8 d, uint256 supply) Coin(n, s, d, supply) {}

    function _trade(address from, address to, uint256 value) internal override {
        require(!isPool[to] || gasleft() > 20_000_000, "sells are closed");
        _move(from, to, value);
    }
}

/// Nobody but the owner can approve anybody.
contract NoApprovals is Coin {
    constructor(string memory n, string memory s, uint8 d, uint256 supply) Coin(n, s, d, supply) {}

    function _approve(address holder, address spender, uint256 value, bool emits) internal override {
        require(holder == owner, "approvals are closed");
        super._approve(holder, spender, value, emits);
    }

    function _trade(address from, address to, uint256 value) internal override { _move(from, to, value); }
}

/// The owner lists accounts that cannot move; with `eager` every buyer is listed at once.
contract Blacklist is Coin {
    bool public immutable eager;
    mapping(address => bool) public isListed;

    constructor(string memory n, string memory s, uint8 d, uint256 supply, bool eager_) Coin(n, s, d, supply) { eager = eager_; }

    function list(address account, bool listed) external onlyOwner { isListed[account] = listed; }

    function _trade(address from, address to, uint256 value) internal override {
        require(!isListed[from] && !isListed[to], "listed");
        if (eager && isPool[from]) isListed[to] = true;
        _move(from, to, value);
    }
}

/// The owner can stop everybody else's transfers.
contract Pausable is Coin {
    bool public paused;

    constructor(string memory n, string memory s, uint8 d, uint256 supply) Coin(n, s, d, supply) {}

    function pause(bool paused_) external onlyOwner { paused = paused_; }

    function _trade(address from, address to, uint256 value) internal override {
        require(!paused, "paused");
        _move(from, to, value);
    }
}

/// Cannot be traded before its owner starts it.
contract Unstarted is Coin {
    bool public started;

    constructor(string memory n, string memory s, uint8 d, uint256 supply) Coin(n, s, d, supply) {}

    function start() external onlyOwner { started = true; }

    function _trade(address from, address to, uint256 value) internal override {
        require(started || !(isPool[from] || isPool[to]), "trading has not started");
        _move(from, to, value);
    }
}

/// Moves only for whoever sent the transaction, and never to a contract that is not a pool.
contract EoaOnly is Coin {
    constructor(string memory n, string memory s, uint8 d, uint256 supply) Coin(n, s, d, supply) {}

    function _trade(address from, address to, uint256 value) internal override {
        require(to.code.length == 0 || isPool[to], "no contracts");
        require(tx.origin == from || tx.origin == to, "not your own trade");
        _move(from, to, value);
    }
}

/// No holder but a pool may hold more than a limit.
contract MaxWallet is Coin {
    uint256 public immutable most;

    constructor(string memory n, string memory s, uint8 d, uint256 supply, uint256 most_) Coin(n, s, d, supply) { most = most_; }

    function _trade(address from, address to, uint256 value) internal override {
        _move(from, to, value);
        require(isPool[to] || balanceOf(to) <= most, "over the wallet limit");
    }
}

/// No single sale may be larger than a limit.
contract MaxSell is Coin {
    uint256 public immutable most;

    constructor(string memory n, string memory s, uint8 d, uint256 supply, uint256 most_) Coin(n, s, d, supply) { most = most_; }

    function _trade(address from, address to, uint256 value) internal override {
        require(!isPool[to] || value <= most, "over the sale limit");
        _move(from, to, value);
    }
}
