// The quotes of @uniswap/smart-order-router 4.31.10 over v2 and v3 pools of the local chain: one JSON object in, a list out.
// It knows no such chain: it is told of one that it knows (Sepolia), whose addresses and coins are overwritten with ours;
// pools come from us instead of a subgraph, gas costs what it costs there, and tokens have no fees of their own.
const { readFileSync, writeSync } = require("fs");
const { createRequire } = require("module");
const need = createRequire(process.argv[2] + "/");
const core = need("@uniswap/sdk-core");
const pairs = need("@uniswap/v2-sdk");
const { ethers, BigNumber } = need("ethers");
const sor = need("@uniswap/smart-order-router");
const inside = "@uniswap/smart-order-router/build/main/";
const addresses = need(inside + "util/addresses");
const chains = need(inside + "util/chains");
const gas = need(inside + "routers/alpha-router/gas-models/gas-model");

const asked = JSON.parse(readFileSync(0, "utf8"));
const id = core.ChainId.SEPOLIA;
addresses.V3_CORE_FACTORY_ADDRESSES[id] = asked.v3_factory;
addresses.QUOTER_V2_ADDRESSES[id] = addresses.NEW_QUOTER_V2_ADDRESSES[id] = asked.quoter;
addresses.UNISWAP_MULTICALL_ADDRESSES[id] = asked.multicall;
pairs.FACTORY_ADDRESS_MAP[id] = asked.v2_factory;
const weth = new core.Token(id, asked.weth, 18, "WETH", "WETH");
const dollar = new core.Token(id, asked.usdg, 6, "USDG", "USDG");
core.WETH9[id] = chains.WRAPPED_NATIVE_CURRENCY[id] = weth;
gas.usdGasTokensByChain[id] = [dollar];

const tokens = Object.fromEntries(asked.tokens.map(([at, decimals]) => [at.toLowerCase(), new core.Token(id, at, decimals, at.slice(0, 8), at.slice(0, 8))]));
tokens[weth.address.toLowerCase()] = weth;
tokens[dollar.address.toLowerCase()] = dollar;
const known = {
  getTokenByAddress: (at) => tokens[at.toLowerCase()],
  getTokenBySymbol: (symbol) => Object.values(tokens).find((token) => token.symbol === symbol),
  getAllTokens: () => Object.values(tokens),
};
const provider = new ethers.providers.StaticJsonRpcProvider(asked.url, { chainId: id, name: "sepolia" });
const router = new sor.AlphaRouter({
  chainId: id,
  provider,
  multicall2Provider: new sor.UniswapMulticallProvider(id, provider, 375000),
  v2SubgraphProvider: { getPools: async () => asked.v2 },
  v3SubgraphProvider: { getPools: async () => asked.v3 },
  v4SubgraphProvider: { getPools: async () => [] },
  tokenProvider: { getTokens: async () => known },
  tokenPropertiesProvider: { getTokensProperties: async () => ({}) },
  gasPriceProvider: { getGasPrice: async () => ({ gasPriceWei: BigNumber.from(asked.gas_price_wei) }) },
  v2Supported: [id], v4Supported: [], mixedSupported: [],
});

async function best([side, at, amount]) {
  const token = tokens[at.toLowerCase()];
  if (!token) return "0";
  const [give, want] = side === "buy" ? [weth, token] : [token, weth];
  try {
    const spent = core.CurrencyAmount.fromRawAmount(give, amount);
    const found = await router.route(spent, want, core.TradeType.EXACT_INPUT, undefined, { protocols: ["V2", "V3"], blockNumber: asked.block });
    return found ? found.quote.quotient.toString() : "0";
  } catch {
    return "0";
  }
}

(async () => {
  const said = [];
  for (const order of asked.orders) said.push(await best(order));
  writeSync(1, JSON.stringify(said));
  process.exit(0);
})();
