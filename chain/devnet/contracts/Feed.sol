// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

/// A price feed in Chainlink's AggregatorV3 shape; its owner writes the answers.
contract Feed {
    struct Round { int256 answer; uint256 updatedAt; }

    address public immutable owner = msg.sender;
    uint8 public constant decimals = 8;
    uint256 public constant version = 4;
    string public description;
    uint80 public latestRound;
    mapping(uint80 => Round) private rounds;

    event AnswerUpdated(int256 indexed current, uint256 indexed roundId, uint256 updatedAt);

    constructor(string memory description_, int256 answer) {
        description = description_;
        set(answer);
    }

    function set(int256 answer) public {
        require(msg.sender == owner, "Feed: not the owner");
        latestRound += 1;
        rounds[latestRound] = Round(answer, block.timestamp);
        emit AnswerUpdated(answer, latestRound, block.timestamp);
    }

    function latestAnswer() external view returns (int256) { return rounds[latestRound].answer; }

    function latestRoundData() external view returns (uint80, int256, uint256, uint256, uint80) {
        return getRoundData(latestRound);
    }

    function getRoundData(uint80 id) public view returns (uint80, int256, uint256, uint256, uint80) {
        require(rounds[id].updatedAt != 0, "No data present");
        return (id, rounds[id].answer, rounds[id].updatedAt, rounds[id].updatedAt, id);
    }
}
