import fc from "fast-check";
import { ConfigError, type ConfigInput, defineConfig } from "../../src/config/index.ts";
import type { Config } from "../../src/config/schema.ts";
import { type CanonicalRequest, canonicalRequest } from "../../src/request/canonical-request.ts";
import { createMatcher } from "../../src/request/matcher.ts";
import { config } from "../arbitraries/config.ts";
import { mutate, mutation } from "../arbitraries/mutation.ts";
import { createTarget, inTime } from "../property.ts";

const input = fc.oneof(
  {
    weight: 19,
    arbitrary: fc
      .tuple(config, fc.array(mutation, { maxLength: 2 }))
      .map(([valid, mutations]) => mutations.reduce<unknown>(mutate, valid)),
  },
  { weight: 1, arbitrary: fc.anything({ maxDepth: 3, withNullPrototype: true }) },
);

/** Matches the message of a fault: the value, and then the allowed values or the cure. */
const FAULT = /^(got .+|missing|unknown field.*); .{10,}/s;

/** The properties that all objects inherit. No case may change them. */
const INHERITED = Object.getOwnPropertyNames(Object.prototype).sort().join();

const REQUEST = canonicalRequest(
  { url: "https://api.example.com/users/7", method: "GET", headers: new Headers() } as Request,
  false,
) as CanonicalRequest;

/** The target for a weir.config.ts with any content. */
export const configTarget = createTarget(
  "config",
  "a configuration is valid, or refused with every fault and the allowed values",
  input,
  (given) => {
    const config = inTime(() => tryDefine(given));
    const inherited = Object.getOwnPropertyNames(Object.prototype).sort().join();
    if (inherited !== INHERITED) throw new Error("Object.prototype was changed");
    if (!config) return;
    const again = defineConfig(JSON.parse(JSON.stringify(given)));
    if (textOf(again) !== textOf(config))
      throw new Error("the configuration differs if it is read from JSON");
    // A Worker creates its matcher when it starts. An exception there would take the site down.
    createMatcher(config.rules, config.caseSensitivePaths)(REQUEST);
  },
);

function tryDefine(given: unknown): Config | undefined {
  try {
    return defineConfig(given as ConfigInput);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const paths = error.faults.map(({ path }) => path);
    if (paths.length === 0) throw new Error("refused without a fault");
    // Different paths look the same if "…" replaces a possible secret in them, so paths with "…" are skipped.
    const complete = paths.filter((path) => !path.includes("…"));
    if (new Set(complete).size < complete.length) throw new Error("two faults have the same path");
    const unclear = error.faults.find(({ message }) => !FAULT.test(message));
    if (unclear) throw new Error(`a fault with the message "${unclear.message}"`);
    return undefined;
  }
}

/** Returns a configuration as text. Includes the entries of Maps, which JSON would omit. */
function textOf(config: Config): string {
  return JSON.stringify(config, (_, value) =>
    value instanceof Map ? { entries: [...value] } : value,
  );
}
