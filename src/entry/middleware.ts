import type { Context, Env as HonoEnv, MiddlewareHandler, Next } from "hono";
import type { Env } from "../config/bindings.ts";
import { faultsOfFaultyConfig, toConfig } from "../config/define.ts";
import type { NodeGlobals } from "../config/faults.ts";
import type { Rule } from "../config/rule.ts";
import type { Config, ConfigInput } from "../config/schema.ts";
import { mergeAppHeaders } from "../http/response-headers.ts";
import type { Quota } from "../limiter/decision.ts";
import { createAdminEntry } from "./admin-entry.ts";
import { createHonoContext, perBindings, prepareGateway } from "./isolate.ts";

/** Options of {@link rateLimit}. */
export interface RateLimitOptions<RuleName extends string = string> {
  /**
   * The only rule to apply, regardless of its `match`.
   *
   * @default every rule of the configuration that matches the request
   */
  readonly rule?: RuleName;
}

/**
 * The variables that {@link rateLimit} sets on Hono's context. Handlers that are not chained to the middleware need
 * the declaration `new Hono<{ Variables: RateLimitVariables }>()`.
 */
export interface RateLimitVariables {
  /**
   * The quotas of the decision: one for each window of each enforced rule, and of each rule with `mode: "mark"`. If
   * the request exceeds the quota of a rule with `mode: "mark"`, `violated` is true. The list is empty if no such
   * rule applies, if the request is undecided, or if this isolate decided it alone (`onError: "local"`).
   *
   * If several middlewares decide a request, the list has the quotas of all of them, in the order in which the
   * middlewares run. Changing the list has no effect on the response. The list is set before the app
   * runs, so it lacks charges that depend on the response (`count`, `cost: "header:NAME"`). The RateLimit headers
   * include these charges.
   */
  readonly rateLimit: readonly Quota[];
}

/** Hono middleware for apps with any types of bindings and variables. */
export type RateLimitMiddleware = (<AppEnv extends HonoEnv>(
  c: Context<AppEnv>,
  next: Next,
) => Promise<Response | undefined>) &
  // Hono infers the types of the variables from the last signature.
  MiddlewareHandler<{ Variables: RateLimitVariables }>;

/** The quotas that {@link rateLimit} has set on each context. Only `rateLimit` may add quotas. */
const quotasSet = new WeakMap<object, readonly Quota[]>();

/**
 * Creates Hono middleware that applies rules to the requests that reach it. If a request exceeds the limit, the
 * middleware answers with 429, and the app does not run. Otherwise the middleware sets `c.var.rateLimit` before the
 * app runs (see {@link RateLimitVariables}), and adds the RateLimit headers to the app's response. If a rule has
 * `tellOrigin` or `mode: "mark"`, the app reads `Weir-Remaining` and `Weir-Over` with `c.req.header`.
 *
 * The configuration's `origin` has no effect. If two middlewares apply the same rule, the rule is charged twice.
 *
 * @example
 * const app = new Hono<{ Variables: RateLimitVariables }>();
 * app.use(rateLimit(config));
 * app.post("/sign-up", rateLimit(config, { rule: "sign-up" }), (c) => c.text("Welcome"));
 * app.get("/quotas", (c) => c.json(c.var.rateLimit));
 *
 * @param config the configuration that `defineConfig` returned, or the argument of `defineConfig`
 * @throws {ConfigError} if `config` is a plain object that has faults
 * @throws {RangeError} if the configuration lacks the rule, if the rule is only for programs, or if the rule reads a
 * parameter of the paths in its `match`
 */
export function rateLimit<const RuleName extends string = never>(
  config: Config<RuleName> | ConfigInput<RuleName>,
  { rule }: RateLimitOptions<NoInfer<RuleName>> = {},
): RateLimitMiddleware {
  const checkedConfig = toConfig(config);
  const { rules } = checkedConfig;
  const isFaulty =
    (globalThis as NodeGlobals).process?.env?.NODE_ENV === "development" &&
    faultsOfFaultyConfig(checkedConfig) !== undefined;
  const appRules = rule === undefined || isFaulty ? rules : [ruleForAllRequests(rules, rule)];
  const preparedFor = perBindings(checkedConfig, (env) => ({
    doctor: createAdminEntry(checkedConfig, env),
    gateway: prepareGateway(checkedConfig, env, appRules),
  }));

  return async function limitRequest(c: Context, next: Next) {
    const env: Env = c.env ?? {};
    const { doctor, gateway } = preparedFor(c.env);
    const examined = doctor?.(c.req.raw, false);
    // Awaiting another value than a promise would cost a microtask.
    const result = examined && (await examined);
    if (result instanceof Response) return result;
    if (result) c.req.raw = result;
    let appResponse: Response | undefined;
    const runApp = async (request: Request, quotas: readonly Quota[]) => {
      // If Weir has changed the headers that tell the app about quotas, `request` is a new object.
      c.req.raw = request;
      const all = [...(quotasSet.get(c) ?? []), ...quotas];
      quotasSet.set(c, all);
      c.set("rateLimit", [...all]);
      await next();
      appResponse = c.res;
      return appResponse;
    };
    // Hono matches routes against the URL as the client sent it. The path of the parsed URL may differ, so the
    // gateway gets Hono's path too.
    const context = createHonoContext(env, c);
    const response = await gateway.handle(c.req.raw, context, runApp, c.req.path);
    if (appResponse === undefined) {
      // Reading `c.res` creates a response. Only pages of other origins need its headers.
      if (c.req.raw.headers.has("origin")) {
        mergeAppHeaders(c.req.raw, response.headers, c.res.headers);
      }
      return response;
    }
    if (response !== appResponse) {
      // Hono copies the headers of an existing `c.res` over those of the new response, so `c.res` is cleared first.
      c.res = undefined;
      c.res = response;
    }
    return undefined;
  };
}

/** @throws {RangeError} */
function ruleForAllRequests(rules: readonly Rule[], name: string): Rule {
  const rule = rules.find((each) => each.name === name);
  if (!rule) {
    const names = rules.map((each) => each.name).join(", ") || "none";
    throw new RangeError(`There is no rule "${name}" for rateLimit. The rules are: ${names}.`);
  }
  if (rule.for === "programs") {
    throw new RangeError(
      `The rule "${name}" has for: "programs", so it counts no HTTP request. Remove this field from the rule, or call the rule through WeirService.`,
    );
  }
  const parameter = [rule.key, rule.tiers?.by ?? []].flat(2).find(({ kind }) => kind === "param");
  if (parameter) {
    throw new RangeError(
      `The rule "${name}" reads a parameter of the paths in its match, which the option "rule" ignores. Use rateLimit(config) without this option.`,
    );
  }
  return { ...rule, match: {} };
}
