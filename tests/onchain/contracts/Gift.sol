// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

/// Leaves its ETH to somebody without a trace: no log, no call.
contract Legacy {
    constructor(address to) payable { selfdestruct(payable(to)); }
}

/// Stands in a token's place: does what the token does, and on each transfer from its owner gives that owner one wei without a trace.
contract Gift {
    address private immutable token;

    constructor(address token_) { token = token_; }

    fallback() external payable {
        (bool ok, bytes memory out) = token.delegatecall(msg.data);
        if (ok && msg.sig == 0x23b872dd && address(this).balance > 0) {
            new Legacy{value: 1}(abi.decode(msg.data[4:36], (address)));
        }
        assembly {
            switch ok
            case 0 { revert(add(out, 32), mload(out)) }
            default { return(add(out, 32), mload(out)) }
        }
    }
}
