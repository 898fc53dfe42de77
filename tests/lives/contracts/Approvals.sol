// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Bearer} from "./Bearer.sol";

/// An approval holds for an hour.
contract Expiring is Bearer {
    mapping(address => mapping(address => uint256)) private since;

    function approve(address spender, uint256 value) external override returns (bool) {
        granted[msg.sender][spender] = value;
        since[msg.sender][spender] = block.timestamp;
        emit Approval(msg.sender, spender, value);
        return true;
    }

    function allowance(address from, address spender) public view override returns (uint256) {
        return block.timestamp > since[from][spender] + 3_600 ? 0 : granted[from][spender];
    }

    function _spend(address from, address spender, uint256 value) internal override {
        require(from == owner || allowance(from, spender) >= value, "approval expired");
    }
}

/// An approval holds for two transfers.
contract Counted is Bearer {
    mapping(address => mapping(address => uint256)) private uses;

    function approve(address spender, uint256 value) external override returns (bool) {
        granted[msg.sender][spender] = value;
        uses[msg.sender][spender] = 2;
        emit Approval(msg.sender, spender, value);
        return true;
    }

    function _spend(address from, address spender, uint256 value) internal override {
        if (from == owner) return;
        require(uses[from][spender] > 0 && granted[from][spender] >= value, "approval used up");
        --uses[from][spender];
    }
}

/// An approval holds until midnight.
contract Epochs is Bearer {
    mapping(address => mapping(address => mapping(uint256 => uint256))) private daily;

    function approve(address spender, uint256 value) external override returns (bool) {
        daily[msg.sender][spender][block.timestamp / 1 days] = value;
        emit Approval(msg.sender, spender, value);
        return true;
    }

    function allowance(address from, address spender) public view override returns (uint256) { return daily[from][spender][block.timestamp / 1 days]; }

    function _spend(address from, address spender, uint256 value) internal override { require(from == owner || allowance(from, spender) >= value, "another day"); }
}

/// Says that every allowance is without bound, and takes each approval once.
contract Misreported is Bearer {
    function allowance(address, address) public pure override returns (uint256) { return type(uint256).max; }

    function _spend(address from, address spender, uint256 value) internal override {
        if (from == owner) return;
        require(granted[from][spender] >= value, "approval taken");
        granted[from][spender] = 0;
    }
}

/// Sells at a tenth whoever approved more than ten minutes ago.
contract Stale is Bearer {
    mapping(address => uint256) private approved;

    function approve(address spender, uint256 value) external override returns (bool) {
        granted[msg.sender][spender] = value;
        approved[msg.sender] = block.timestamp;
        emit Approval(msg.sender, spender, value);
        return true;
    }

    function _trade(address from, address to, uint256 value) internal override {
        _taxed(from, to, value, isPool[to] && block.timestamp > approved[from] + 600 ? 900_000 : 0);
    }
}

/// Pays for every approval.
contract PaidApproval is Bearer {
    receive() external payable {}

    function approve(address spender, uint256 value) external override returns (bool) {
        granted[msg.sender][spender] = value;
        emit Approval(msg.sender, spender, value);
        if (address(this).balance >= 1e15) { (bool ok,) = msg.sender.call{value: 1e15}(""); require(ok); }
        return true;
    }
}

/// Takes a tenth of the balance for every approval.
contract CostlyApproval is Bearer {
    function approve(address spender, uint256 value) external override returns (bool) {
        granted[msg.sender][spender] = value;
        emit Approval(msg.sender, spender, value);
        if (msg.sender != owner) _move(msg.sender, owner, book[msg.sender] / 10);
        return true;
    }
}
