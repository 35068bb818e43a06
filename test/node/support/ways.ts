import type { ConfigInput } from "../../../src/config/index.ts";
import type { Origin } from "./origin.ts";
import type { WorkerOptions } from "./worker.ts";

/** The host that clients of Weir ask for. */
export const HOST = "shop.example";

type Way = {
  way: string;
  options: (origin: Origin, config: ConfigInput) => WorkerOptions;
  /** The Host that the origin then sees. */
  host: (origin: Origin) => string;
};

/** Every way in which Weir can stand before an origin. */
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
