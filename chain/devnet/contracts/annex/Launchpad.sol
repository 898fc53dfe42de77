// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {IPoolManager, ModifyLiquidityParams, PoolKey} from "./Hook.sol";

contract LaunchToken is ERC20 {
    constructor(string memory name_, string memory symbol_, uint256 supply) ERC20(name_, symbol_) { _mint(msg.sender, supply); }
}

/// Starts tokens, each with a curve of its own.
contract Launchpad {
    uint256 private constant SUPPLY = 1_000_000_000 ether;
    IPoolManager public immutable manager;
    address public immutable hook;

    event TokenLaunched(address indexed token, address indexed curve, address indexed creator, uint256 supply, string name, string symbol);

    constructor(address manager_, address hook_) { (manager, hook) = (IPoolManager(manager_), hook_); }

    function launch(string calldata name, string calldata symbol) external returns (address token, address curve) {
        LaunchToken made = new LaunchToken(name, symbol, SUPPLY);
        Curve sold = new Curve(made, manager, hook, SUPPLY);
        made.transfer(address(sold), SUPPLY);
        (token, curve) = (address(made), address(sold));
        emit TokenLaunched(token, curve, msg.sender, SUPPLY, name, symbol);
    }
}

/// A bonding curve: constant product of what was raised and what is left, both with a virtual part. It takes 1 % of every
/// trade. When `GOAL` is raised, all of it and the last fifth of the supply become a v4 pool with a hook that takes a fee.
contract Curve {
    uint256 public constant GOAL = 4.2 ether;
    uint256 private constant VIRTUAL_QUOTE = 1.4 ether;
    uint256 private constant FEE_CUT = 100;
    LaunchToken public immutable token;
    IPoolManager public immutable manager;
    address public immutable hook;
    uint256 private immutable _virtualTokens;
    uint256 public raised;
    uint256 public sold;
    bool public graduated;

    event Bought(address indexed buyer, address indexed recipient, uint256 quoteIn, uint256 tokensOut);
    event Sold(address indexed seller, address indexed recipient, uint256 tokensIn, uint256 quoteOut);
    event CurveGraduated(address indexed token, bytes32 indexed pool, uint256 quote, uint256 tokens);

    error HasGraduated();
    error WrongValue(uint256 sent, uint256 quoteIn);
    error TooLittle(uint256 out, uint256 minOut);

    constructor(LaunchToken token_, IPoolManager manager_, address hook_, uint256 supply) {
        (token, manager, hook) = (token_, manager_, hook_);
        _virtualTokens = supply * 16 / 15;
    }

    /// What `quoteIn` of native ETH brings, and how much of it is used: a buy ends at the goal.
    function quoteBuy(uint256 quoteIn) public view returns (uint256 tokensOut, uint256 used) {
        uint256 most = (GOAL - raised) * FEE_CUT / (FEE_CUT - 1) + 1;
        used = quoteIn < most ? quoteIn : most;
        uint256 net = Math.min(used - used / FEE_CUT, GOAL - raised);
        tokensOut = _left() - Math.ceilDiv(_product(), VIRTUAL_QUOTE + raised + net);
    }

    function quoteSell(uint256 tokensIn) public view returns (uint256 quoteOut) {
        uint256 gross = VIRTUAL_QUOTE + raised - Math.ceilDiv(_product(), _left() + tokensIn);
        return gross - Math.ceilDiv(gross, FEE_CUT);
    }

    function buy(uint256 quoteIn, uint256 minOut, address recipient) external payable returns (uint256 tokensOut) {
        if (graduated) revert HasGraduated();
        if (msg.value != quoteIn) revert WrongValue(msg.value, quoteIn);
        uint256 used;
        (tokensOut, used) = quoteBuy(quoteIn);
        if (tokensOut < minOut) revert TooLittle(tokensOut, minOut);
        raised += Math.min(used - used / FEE_CUT, GOAL - raised);
        sold += tokensOut;
        token.transfer(recipient, tokensOut);
        emit Bought(msg.sender, recipient, used, tokensOut);
        if (raised == GOAL) _graduate();
        if (used < quoteIn) _pay(msg.sender, quoteIn - used);
    }

    function sell(uint256 tokensIn, uint256 minOut, address recipient) external returns (uint256 quoteOut) {
        if (graduated) revert HasGraduated();
        quoteOut = quoteSell(tokensIn);
        if (quoteOut < minOut) revert TooLittle(quoteOut, minOut);
        token.transferFrom(msg.sender, address(this), tokensIn);
        raised -= Math.min(raised, quoteOut + Math.ceilDiv(quoteOut, FEE_CUT - 1));
        sold -= tokensIn;
        emit Sold(msg.sender, recipient, tokensIn, quoteOut);
        _pay(recipient, quoteOut);
    }

    function poolKey() public view returns (PoolKey memory) { return PoolKey(address(0), address(token), 0, 200, hook); }

    function unlockCallback(bytes calldata) external returns (bytes memory) {
        require(msg.sender == address(manager), "not the manager");
        uint160 root = _root();
        uint256 liquidity = Math.mulDiv(raised, root, 1 << 96) * 999 / 1_000;
        (int256 delta,) = manager.modifyLiquidity(poolKey(), ModifyLiquidityParams(-887_200, 887_200, int256(liquidity), 0), "");
        uint256 quote = uint256(-(delta >> 128));
        uint256 tokens = uint256(-int256(int128(delta)));
        manager.settle{value: quote}();
        manager.sync(address(token));
        token.transfer(address(manager), tokens);
        manager.settle();
        emit CurveGraduated(address(token), keccak256(abi.encode(poolKey())), quote, tokens);
        return "";
    }

    function _graduate() private {
        graduated = true;
        manager.initialize(poolKey(), _root());
        manager.unlock("");
    }

    /// The curve's last price as the square root of tokens per ETH, times 2^96.
    function _root() private view returns (uint160) {
        return uint160(Math.sqrt((_left() << 96) / (VIRTUAL_QUOTE + raised)) << 48);
    }

    function _left() private view returns (uint256) { return _virtualTokens - sold; }

    function _product() private view returns (uint256) { return VIRTUAL_QUOTE * _virtualTokens; }

    function _pay(address to, uint256 amount) private {
        (bool done,) = to.call{value: amount}("");
        require(done, "payment failed");
    }
}
