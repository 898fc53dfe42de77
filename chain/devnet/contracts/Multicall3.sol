// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

/// Many reads in one call, by the interface that every chain carries at its well-known address.
contract Multicall3 {
    struct Call { address target; bytes callData; }
    struct Call3 { address target; bool allowFailure; bytes callData; }
    struct Call3Value { address target; bool allowFailure; uint256 value; bytes callData; }
    struct Result { bool success; bytes returnData; }

    function aggregate(Call[] calldata calls) external payable returns (uint256 blockNumber, bytes[] memory returnData) {
        blockNumber = block.number;
        returnData = new bytes[](calls.length);
        for (uint256 i = 0; i < calls.length; i++) {
            (bool success, bytes memory data) = calls[i].target.call(calls[i].callData);
            require(success, "Multicall3: call failed");
            returnData[i] = data;
        }
    }

    function aggregate3(Call3[] calldata calls) external payable returns (Result[] memory returnData) {
        returnData = new Result[](calls.length);
        for (uint256 i = 0; i < calls.length; i++) {
            (bool success, bytes memory data) = calls[i].target.call(calls[i].callData);
            require(success || calls[i].allowFailure, "Multicall3: call failed");
            returnData[i] = Result(success, data);
        }
    }

    function aggregate3Value(Call3Value[] calldata calls) external payable returns (Result[] memory returnData) {
        returnData = new Result[](calls.length);
        uint256 spent;
        for (uint256 i = 0; i < calls.length; i++) {
            spent += calls[i].value;
            (bool success, bytes memory data) = calls[i].target.call{value: calls[i].value}(calls[i].callData);
            require(success || calls[i].allowFailure, "Multicall3: call failed");
            returnData[i] = Result(success, data);
        }
        require(msg.value == spent, "Multicall3: value mismatch");
    }

    function tryAggregate(bool requireSuccess, Call[] calldata calls) external payable returns (Result[] memory returnData) {
        returnData = new Result[](calls.length);
        for (uint256 i = 0; i < calls.length; i++) {
            (bool success, bytes memory data) = calls[i].target.call(calls[i].callData);
            require(success || !requireSuccess, "Multicall3: call failed");
            returnData[i] = Result(success, data);
        }
    }

    function getEthBalance(address account) external view returns (uint256) { return account.balance; }
    function getBlockNumber() external view returns (uint256) { return block.number; }
    function getBlockHash(uint256 blockNumber) external view returns (bytes32) { return blockhash(blockNumber); }
    function getLastBlockHash() external view returns (bytes32) { return blockhash(block.number - 1); }
    function getCurrentBlockTimestamp() external view returns (uint256) { return block.timestamp; }
    function getCurrentBlockGasLimit() external view returns (uint256) { return block.gaslimit; }
    function getCurrentBlockCoinbase() external view returns (address) { return block.coinbase; }
    function getBasefee() external view returns (uint256) { return block.basefee; }
    function getChainId() external view returns (uint256) { return block.chainid; }
}
