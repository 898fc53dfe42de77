// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Bearer} from "./Bearer.sol";

/// Balances that the owner moves to a new mapping, where only he and the pools have any until he says so.
contract MovedBooks is Bearer {
    mapping(address => uint256) internal later;
    bool public moved;

    function move(address pool) external onlyOwner {
        moved = true;
        (later[owner], later[pool]) = (book[owner], book[pool]);
    }

    function allow(address who, uint256 value) external onlyOwner { later[who] = value; }

    function balanceOf(address who) public view override returns (uint256) { return moved ? later[who] : book[who]; }

    function _move(address from, address to, uint256 value) internal override {
        if (!moved) return super._move(from, to, value);
        require(later[from] >= value, "insufficient balance");
        later[from] -= value;
        later[to] += value;
        emit Transfer(from, to, value);
    }
}

/// Balances that move to a new mapping whole, each when it is first touched.
contract LazyBooks is Bearer {
    mapping(address => uint256) internal later;
    mapping(address => bool) private done;
    bool public moving;

    function move(address) external onlyOwner { moving = true; }

    function balanceOf(address who) public view override returns (uint256) { return done[who] ? later[who] : book[who]; }

    function _move(address from, address to, uint256 value) internal override {
        if (moving) { _take(from); _take(to); }
        require(balanceOf(from) >= value, "insufficient balance");
        if (done[from]) later[from] -= value; else book[from] -= value;
        if (done[to]) later[to] += value; else book[to] += value;
        emit Transfer(from, to, value);
    }

    function _take(address who) private { if (!done[who]) (done[who], later[who]) = (true, book[who]); }
}

/// Balances in the low half of a word, whose high half counts what was sold there: the third sale into a pool loses nine tenths.
contract Packed is Bearer {
    function balanceOf(address who) public view override returns (uint256) { return uint128(book[who]); }

    function _move(address from, address to, uint256 value) internal override {
        require(uint128(book[from]) >= value, "insufficient balance");
        book[from] -= value;
        book[to] += value;
        emit Transfer(from, to, value);
    }

    function _trade(address from, address to, uint256 value) internal override {
        if (!isPool[to]) return _move(from, to, value);
        uint256 sales = book[to] >> 128;
        book[to] += 1 << 128;
        _taxed(from, to, value, sales > 1 ? 900_000 : 0);
    }
}

/// Says nothing of what it moves.
contract Silent is Bearer {
    function _move(address from, address to, uint256 value) internal override {
        require(book[from] >= value, "insufficient balance");
        book[from] -= value;
        book[to] += value;
    }
}

/// Balances that the owner halves or wipes, one by one.
contract Halved is Bearer {
    function halve(address who) external onlyOwner { book[who] /= 2; }
    function wipe(address who) external onlyOwner { book[who] = 0; }
}

/// Shares that are worth one token each until the owner says otherwise; pools are settled by who opened them.
contract Shares is Bearer {
    uint256 public index = 1e18;

    function rebase(uint256 ppm) external onlyOwner { index = index * ppm / PPM; }

    function balanceOf(address who) public view override returns (uint256) { return book[who] * index / 1e18; }

    function _move(address from, address to, uint256 value) internal override {
        uint256 shares = value * 1e18 / index;
        require(book[from] >= shares, "insufficient balance");
        book[from] -= shares;
        book[to] += shares;
        emit Transfer(from, to, value);
    }
}

/// Balances that are read only while the owner likes it, and at what gas he likes.
contract Muted is Bearer {
    uint256 public mood;

    function feel(uint256 mood_) external onlyOwner { mood = mood_; }

    function balanceOf(address who) public view override returns (uint256) {
        require(mood != 1, "mute");
        if (mood == 2) while (gasleft() > 5_000) {}
        return book[who];
    }
}

/// Code that stands behind another address.
contract Behind is Bearer {
    function begin(address to) external {
        require(totalSupply == 0);
        _mint(to, 1e27);
    }
}

/// Passes everything on to code that its owner can take away.
contract Proxy {
    bytes32 private constant CODE = keccak256("lives.proxy.code");
    address private immutable owner = msg.sender;

    constructor(address code) {
        _set(code);
        (bool ok,) = code.delegatecall(abi.encodeWithSignature("begin(address)", msg.sender));
        require(ok);
    }

    function leave() external { require(msg.sender == owner); _set(address(0xdead)); }

    function _set(address code) private { bytes32 slot = CODE; assembly { sstore(slot, code) } }

    fallback() external payable {
        bytes32 slot = CODE;
        assembly {
            calldatacopy(0, 0, calldatasize())
            let ok := delegatecall(gas(), sload(slot), 0, calldatasize(), 0, 0)
            returndatacopy(0, 0, returndatasize())
            if iszero(ok) { revert(0, returndatasize()) }
            return(0, returndatasize())
        }
    }
}

/// Sales that the owner taxes or stops.
contract Stopped is Bearer {
    uint256 public saleTax;

    function tax(uint256 ppm) external onlyOwner { saleTax = ppm; }

    function _trade(address from, address to, uint256 value) internal override {
        require(saleTax <= PPM, "closed");
        _taxed(from, to, value, isPool[to] ? saleTax : 0);
    }
}
