import type { MiddlewareHandler } from "hono";
import type { Env } from "./config/bindings.ts";
import type { Rule } from "./config/rule.ts";
import type { Config } from "./config/schema.ts";
import type { Gateway } from "./gateway.ts";
import { prepareGateway, type WeirOptions } from "./weir.ts";

/** @typeParam RuleName the names of the configuration's rules */
export interface RateLimitOptions<RuleName extends string = string> extends WeirOptions {
  /**
   * The one rule that holds where the middleware stands, whatever its `match` says. Left out: every
   * rule of the configuration that a request matches.
   */
  readonly rule?: RuleName;
}

/**
 * Hono middleware that limits what comes behind it, just as Weir limits what it forwards: over the
 * limit it answers itself, and to other responses it adds the RateLimit fields. `origin` in the
 * configuration means nothing here.
 *
 * @example
 * const app = new Hono();
 * app.use(rateLimit(config));
 * app.post("/sign-up", rateLimit(config, { rule: "sign-up" }), (c) => c.text("Welcome"));
 *
 * @param config what `defineConfig` made
 * @throws {RangeError} when there is no such rule, or it is counted by a parameter of the paths that
 * it matches
 */
export function rateLimit<RuleName extends string>(
  config: Config<RuleName>,
  { rule, keys = {} }: RateLimitOptions<NoInfer<RuleName>> = {},
): MiddlewareHandler {
  const rules = rule === undefined ? config.rules : [everywhere(config.rules, rule)];
  let gateway: Gateway | undefined;

  return async function limitRequest(c, next) {
    gateway ??= prepareGateway({ ...config, rules, origin: undefined }, (c.env ?? {}) as Env, keys);
    let passed: Response | undefined;
    const answer = async () => {
      await next();
      passed = c.res;
      return passed;
    };
    // Hono routes by the URL as it was sent, which may be another path than the resolved URL's.
    const response = await gateway(c.req.raw, answer, c.req.path);
    if (passed === undefined) return response;
    if (response !== passed) {
      // Hono copies the header fields of a response onto the one that takes its place, over those
      // that are there. With none in between, it has nothing to copy.
      c.res = undefined;
      c.res = response;
    }
    return undefined;
  };
}

function everywhere(rules: readonly Rule[], name: string): Rule {
  const rule = rules.find((each) => each.name === name);
  if (!rule) {
    const names = rules.map((each) => each.name).join(", ") || "none";
    throw new RangeError(`There is no rule "${name}" for rateLimit. There are: ${names}.`);
  }
  const parameter = [rule.key, rule.tiers?.by ?? []].flat(2).find(({ kind }) => kind === "param");
  if (parameter) {
    throw new RangeError(
      `The rule "${name}" reads a parameter of the paths in its match: use rateLimit(config) without rule.`,
    );
  }
  return { ...rule, match: {} };
}
