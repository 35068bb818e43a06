import fc from "fast-check";
import { ConfigError, type ConfigInput, defineConfig } from "../../src/config/index.ts";
import type { Config } from "../../src/config/schema.ts";
import { type CanonicalRequest, canonicalRequest } from "../../src/request/canonical-request.ts";
import { createMatcher } from "../../src/request/matcher.ts";
import { config } from "../arbitraries/config.ts";
import { mutated, mutation } from "../arbitraries/mutation.ts";
import { inTime, property } from "../property.ts";

const input = fc.oneof(
  {
    weight: 19,
    arbitrary: fc
      .tuple(config, fc.array(mutation, { maxLength: 2 }))
      .map(([valid, mutations]) => mutations.reduce<unknown>(mutated, valid)),
  },
  { weight: 1, arbitrary: fc.anything({ maxDepth: 3, withNullPrototype: true }) },
);

/** What a fault says: what is there, and what may be. */
const FAULT = /^(got .*|missing|unknown field.*); allowed: ./s;

/** What all objects inherit, before anything is tried. */
const INHERITED = Object.getOwnPropertyNames(Object.prototype).sort().join();

const REQUEST = canonicalRequest(
  { url: "https://api.example.com/users/7", method: "GET", headers: new Headers() } as Request,
  false,
) as CanonicalRequest;

/** A weir.config.ts with anything in it. */
export const configTarget = property(
  "config",
  "a configuration is valid, or refused with every fault and what is allowed in its place",
  input,
  (given) => {
    const config = inTime(() => orRefused(given));
    const inherited = Object.getOwnPropertyNames(Object.prototype).sort().join();
    if (inherited !== INHERITED) throw new Error("every object has inherited something");
    if (!config) return;
    const again = defineConfig(JSON.parse(JSON.stringify(given)));
    if (textOf(again) !== textOf(config)) throw new Error("it is another when read from JSON");
    // A Worker makes its matcher when it starts: what fails there takes the site down.
    createMatcher(config.rules, config.caseSensitivePaths)(REQUEST);
  },
);

function orRefused(given: unknown): Config | undefined {
  try {
    return defineConfig(given as ConfigInput);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const paths = error.faults.map(({ path }) => path);
    if (paths.length === 0) throw new Error("refused without a fault");
    if (new Set(paths).size < paths.length) throw new Error("two faults in one place");
    const odd = error.faults.find(({ message }) => !FAULT.test(message));
    if (odd) throw new Error(`a fault that says "${odd.message}"`);
    return undefined;
  }
}

/** A configuration in full: Maps too, which JSON passes over. */
function textOf(config: Config): string {
  return JSON.stringify(config, (_, value) =>
    value instanceof Map ? { entries: [...value] } : value,
  );
}
