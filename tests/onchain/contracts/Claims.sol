// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

interface IManager {
    function unlock(bytes calldata data) external returns (bytes memory);
    function take(address currency, address to, uint256 amount) external;
    function mint(address to, uint256 id, uint256 amount) external;
    function burn(address from, uint256 id, uint256 amount) external;
    function sync(address currency) external;
    function settle() external payable returns (uint256);
}

interface ICoin { function transfer(address to, uint256 amount) external returns (bool); }

/// Leaves tokens in the v4 manager as claims, and pays out of them later.
contract Claims {
    IManager public immutable manager;

    constructor(address manager_) { manager = IManager(manager_); }

    function load(address token, uint256 amount) external { manager.unlock(abi.encode(true, token, address(this), amount)); }

    function pay(address token, address to, uint256 amount) external { manager.unlock(abi.encode(false, token, to, amount)); }

    function unlockCallback(bytes calldata data) external returns (bytes memory) {
        (bool loads, address token, address to, uint256 amount) = abi.decode(data, (bool, address, address, uint256));
        if (loads) {
            manager.sync(token);
            ICoin(token).transfer(address(manager), amount);
            manager.settle();
            manager.mint(address(this), uint160(token), amount);
        } else {
            manager.burn(address(this), uint160(token), amount);
            manager.take(token, to, amount);
        }
        return "";
    }
}
