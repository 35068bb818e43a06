import type { ConfigInput } from "../../../src/config/index.ts";
import type { Origin } from "./origin.ts";
import type { WorkerOptions } from "./worker.ts";

/** The host in the requests of Weir's clients. */
export const HOST = "shop.example";

interface Way {
  readonly way: string;
  readonly options: (origin: Origin, config: ConfigInput) => WorkerOptions;
  /** The `Host` that the origin receives. */
  readonly host: (origin: Origin) => string;
}

/** All ways in which Weir can forward to an origin. */
export const WAYS: Way[] = [
  {
    way: "ORIGIN_URL",
    options: ({ url }, config) => ({ config, vars: { ORIGIN_URL: url } }),
    host: ({ address }) => address,
  },
  {
    way: "a service binding",
    options: ({ address }, config) => ({
      config: { ...config, origin: { binding: "SHOP" } },
      services: { SHOP: { address } },
    }),
    host: () => HOST,
  },
  {
    way: "a route",
    options: ({ address }, config) => ({ config, zone: address }),
    host: () => HOST,
  },
];
