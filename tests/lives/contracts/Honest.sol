// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Bearer} from "./Bearer.sol";

/// Stamps both sides of every transfer.
contract LastTransfer is Bearer {
    mapping(address => uint256) public lastTransfer;

    function _trade(address from, address to, uint256 value) internal override {
        lastTransfer[from] = lastTransfer[to] = block.timestamp;
        _move(from, to, value);
    }
}

/// Accrues rewards as staking contracts do: a sum per token for all, what was paid of it to each.
contract Accrual is Bearer {
    uint256 public perToken;
    uint256 public updated;
    mapping(address => uint256) public paid;
    mapping(address => uint256) public earned;

    function _trade(address from, address to, uint256 value) internal override {
        perToken += (block.timestamp - updated) * 1e36 / totalSupply;
        updated = block.timestamp;
        _accrue(from);
        _accrue(to);
        _move(from, to, value);
    }

    function _accrue(address who) private {
        if (isPool[who]) return;
        earned[who] += book[who] * (perToken - paid[who]) / 1e18;
        paid[who] = perToken;
    }
}

/// Keeps beside each balance the index up to which its holder was served.
contract PerUserIndex is Bearer {
    uint256 public index = 1e18;
    mapping(address => uint256) public served;

    function raise(uint256 ppm) external onlyOwner { index += index * ppm / PPM; }

    function _trade(address from, address to, uint256 value) internal override {
        if (served[from] != index) served[from] = index;
        if (served[to] != index) served[to] = index;
        _move(from, to, value);
    }
}

/// Votes that everybody delegates to himself, with their history by block.
contract AutoVotes is Bearer {
    struct Checkpoint { uint32 fromBlock; uint224 votes; }

    mapping(address => address) private delegate;
    mapping(address => Checkpoint[]) private history;

    function getVotes(address who) external view returns (uint256) {
        uint256 count = history[who].length;
        return count == 0 ? 0 : history[who][count - 1].votes;
    }

    function _trade(address from, address to, uint256 value) internal override {
        _move(from, to, value);
        _note(from);
        _note(to);
    }

    function _note(address who) private {
        if (delegate[who] == address(0)) delegate[who] = who;
        Checkpoint[] storage mine = history[who];
        uint224 votes = uint224(book[who]);
        if (mine.length > 0 && mine[mine.length - 1].fromBlock == block.number) mine[mine.length - 1].votes = votes;
        else mine.push(Checkpoint(uint32(block.number), votes));
    }
}

/// ERC-404: every hundred whole tokens of a holder are one piece of their own, made and unmade as balances move.
contract Pieces is Bearer {
    uint256 public constant UNIT = 100e18;
    uint256 public minted;
    mapping(uint256 => address) public ownerOf;
    mapping(address => uint256[]) private owned;
    uint256[] private bank;

    function _trade(address from, address to, uint256 value) internal override {
        _move(from, to, value);
        _fit(from);
        _fit(to);
    }

    function _fit(address who) private {
        if (isPool[who]) return;
        uint256 wanted = book[who] / UNIT;
        uint256[] storage mine = owned[who];
        while (mine.length > wanted) { uint256 id = mine[mine.length - 1]; mine.pop(); delete ownerOf[id]; bank.push(id); }
        while (mine.length < wanted) {
            uint256 id;
            if (bank.length > 0) { id = bank[bank.length - 1]; bank.pop(); } else id = ++minted;
            mine.push(id);
            ownerOf[id] = who;
        }
    }
}

/// Keeps a list of its holders and serves three of them, in turn, with every transfer.
contract DividendList is Bearer {
    uint256 public next;
    uint256 public perShare;
    address[] public holders;
    mapping(address => uint256) public placeOf;
    mapping(address => uint256) public lastServed;
    mapping(address => uint256) public credited;

    function _trade(address from, address to, uint256 value) internal override {
        _move(from, to, value);
        perShare += value * 1e18 / totalSupply;
        _list(from);
        _list(to);
        for (uint256 i; i < 3 && holders.length > 0; ++i) {
            if (next >= holders.length) next = 0;
            address who = holders[next++];
            credited[who] += book[who] * perShare / 1e18;
            lastServed[who] = block.timestamp;
        }
    }

    function _list(address who) private {
        if (isPool[who]) return;
        uint256 place = placeOf[who];
        if (book[who] > 0 && place == 0) { holders.push(who); placeOf[who] = holders.length; }
        if (book[who] == 0 && place > 0) {
            address last = holders[holders.length - 1];
            (holders[place - 1], placeOf[last], placeOf[who]) = (last, place, 0);
            holders.pop();
        }
    }
}

/// Pays dividends by what it was told of balances.
contract Tracker {
    uint256 public perShare;
    uint256 public total;
    mapping(address => uint256) public shares;
    mapping(address => int256) public correction;

    function setBalance(address who, uint256 balance) external {
        correction[who] -= (int256(balance) - int256(shares[who])) * int256(perShare);
        total = total + balance - shares[who];
        shares[who] = balance;
    }

    function distribute(uint256 amount) external { if (total > 0) perShare += amount * 1e9 / total; }
}

/// Tells a tracker of its own of every balance.
contract DividendTracked is Bearer {
    Tracker public immutable tracker = new Tracker();

    function _trade(address from, address to, uint256 value) internal override {
        _move(from, to, value);
        if (!isPool[from]) try tracker.setBalance(from, book[from]) {} catch {}
        if (!isPool[to]) try tracker.setBalance(to, book[to]) {} catch {}
        tracker.distribute(value / 100);
    }
}

/// Keeps a list of who holds it.
contract HolderList is Bearer {
    address[] public holders;
    mapping(address => uint256) public placeOf;

    function _trade(address from, address to, uint256 value) internal override {
        _move(from, to, value);
        if (!isPool[to] && placeOf[to] == 0) { holders.push(to); placeOf[to] = holders.length; }
        if (!isPool[from] && book[from] == 0 && placeOf[from] > 0) {
            uint256 place = placeOf[from];
            address last = holders[holders.length - 1];
            (holders[place - 1], placeOf[last]) = (last, place);
            placeOf[from] = 0;
            holders.pop();
        }
    }
}

/// A hundredth of every trade goes into a pot, which whoever bought last gets when nobody bought for ten minutes.
contract LastBuyer is Bearer {
    address public last;
    uint256 public since;

    function _trade(address from, address to, uint256 value) internal override {
        if (last != address(0) && block.timestamp > since + 600) {
            _move(address(this), last, book[address(this)]);
            last = address(0);
        }
        if (isPool[from]) (last, since) = (to, block.timestamp);
        _move(from, address(this), value / 100);
        _move(from, to, value - value / 100);
    }
}

/// Nobody sells more than so much a day.
contract DailyLimit is Bearer {
    uint256 public constant MOST = 60e18;
    mapping(address => mapping(uint256 => uint256)) public sold;

    function _trade(address from, address to, uint256 value) internal override {
        if (isPool[to]) {
            sold[from][block.timestamp / 1 days] += value;
            require(sold[from][block.timestamp / 1 days] <= MOST, "enough for today");
        }
        _move(from, to, value);
    }
}

/// Remembers every balance as it was at each of the owner's snapshots.
contract Snapshots is Bearer {
    struct Past { uint256 id; uint256 value; }

    uint256 public current;
    mapping(address => Past[]) private past;

    function snapshot() external onlyOwner { ++current; }

    function _trade(address from, address to, uint256 value) internal override {
        _keep(from);
        _keep(to);
        _move(from, to, value);
    }

    function _keep(address who) private {
        Past[] storage mine = past[who];
        if (current > 0 && (mine.length == 0 || mine[mine.length - 1].id < current)) mine.push(Past(current, book[who]));
    }
}

interface IPair {
    function getReserves() external view returns (uint112, uint112, uint32);
    function token0() external view returns (address);
    function swap(uint256 out0, uint256 out1, address to, bytes calldata data) external;
}

/// Keeps a fiftieth of every trade, and before a sale sells what it has kept to the same pair.
contract SwapBack is Bearer {
    uint256 public constant LEAST = 2e18;

    function _trade(address from, address to, uint256 value) internal override {
        if (isPool[to] && book[address(this)] >= LEAST) _sellKept(IPair(to));
        _move(from, address(this), value / 50);
        _move(from, to, value - value / 50);
    }

    function _sellKept(IPair pair) private {
        (uint256 reserve0, uint256 reserve1,) = pair.getReserves();
        bool first = pair.token0() == address(this);
        (uint256 mine, uint256 other) = first ? (reserve0, reserve1) : (reserve1, reserve0);
        uint256 kept = book[address(this)];
        _move(address(this), address(pair), kept);
        uint256 brings = kept * 997 * other / (mine * 1_000 + kept * 997);
        pair.swap(first ? 0 : brings, first ? brings : 0, owner, "");
    }
}

/// A hundredth of every trade goes to all holders, by a rate that falls.
contract Reflection is Bearer {
    uint256 public rate = 1e18;
    uint256 private outstanding = 1e27;

    function balanceOf(address who) public view override returns (uint256) { return book[who] * 1e18 / rate; }

    function _move(address from, address to, uint256 value) internal override {
        uint256 shares = value * rate / 1e18;
        require(book[from] >= shares, "insufficient balance");
        book[from] -= shares;
        book[to] += shares;
        emit Transfer(from, to, value);
    }

    function _trade(address from, address to, uint256 value) internal override {
        uint256 fee = value / 100;
        _move(from, to, value - fee);
        uint256 shares = fee * rate / 1e18;
        book[from] -= shares;
        outstanding -= shares;
        rate = outstanding * 1e18 / 1e27;
    }
}
