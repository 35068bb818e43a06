import * as v from "valibot";
import type { Fault } from "./faults.ts";
import { type Config, ConfigSchema } from "./schema.ts";

/** Other copies of Weir use the same symbol, so they find the faults too. */
const FAULTS = Symbol.for("weir.faults");

/**
 * Whether this code runs in a local workerd, which `wrangler dev` has started.
 *
 * A deploy with the environment variable `NODE_ENV=development` also makes a bundle for development. In
 * that bundle, `defineConfig` must throw, so that Cloudflare refuses the deploy: Cloudflare starts a
 * Worker before it accepts it. While a Worker starts, it has no bindings, no request and no clock, in
 * `wrangler dev` and at Cloudflare. But the names of its modules differ: in `wrangler dev`, they are
 * URLs of files.
 */
export function isLocalWorkerd(): boolean {
  // Node 20 has no navigator.
  const isWorkerd =
    typeof navigator !== "undefined" && navigator.userAgent === "Cloudflare-Workers";
  return isWorkerd && new Error().stack?.includes("file://") === true;
}

/**
 * Creates a configuration that stands in for one with faults while `wrangler dev` runs. It has no
 * rules. Every handler answers requests with 503 and the faults, and every call of a service throws
 * an error with the faults.
 */
export function createFaultyConfig(faults: readonly Fault[]): Config {
  return Object.defineProperty(v.parse(ConfigSchema, { rules: [] }), FAULTS, { value: faults });
}

/** Returns the faults of a configuration that {@link createFaultyConfig} created. */
export function faultsOfFaultyConfig(config: Config): readonly Fault[] | undefined {
  return (config as { readonly [FAULTS]?: readonly Fault[] })[FAULTS];
}
