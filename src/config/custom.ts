import * as v from "valibot";
import type { CustomCost, CustomKey, CustomResponse, CustomSettle } from "./custom-functions.ts";
import { faultText } from "./fault-text.ts";
import { anyMapOf, fields, textMatching } from "./fields.ts";

/** The functions for the keys `custom:NAME`, each with its NAME as the name of the property. */
export type CustomKeys = Readonly<Record<string, CustomKey>>;

/** The functions for `cost: "custom:NAME"`, each with its NAME as the name of the property. */
export type CustomCosts = Readonly<Record<string, CustomCost>>;

/** The functions for `settle: "custom:NAME"`, each with its NAME as the name of the property. */
export type CustomSettles = Readonly<Record<string, CustomSettle>>;

/** The functions for `response: "custom:NAME"`, each with its NAME as the name of the property. */
export type CustomResponses = Readonly<Record<string, CustomResponse>>;

/**
 * Your own functions. A function computes a client's key, a tier, a cost, or the response to a
 * denied request.
 */
export interface CustomInput {
  /**
   * The functions for the keys `custom:NAME` of the rules. The name of a function is the NAME in
   * the key, and consists of the characters `A-Z a-z 0-9 _`. A function gets the request and a
   * {@link CustomContext}.
   * It returns a text, or a promise of a text. Weir calls it at most once for each request. For one
   * request, all functions together may take at most `timeoutMs`.
   *
   * @default none
   * @example { plan: (request, { env }) => env.PLANS.get(request.headers.get("x-api-key")) }
   */
  readonly keys?: CustomKeys | undefined;
  /**
   * The functions for the costs `custom:NAME` of requests. A function gets the request and a
   * {@link CustomContext}. It returns a whole number from 0 to 999999999999999, or a promise of it.
   * Weir calls it at most once for each request, and only if a rule needs its result. The functions
   * share the time of the functions in `keys`.
   *
   * @default none
   * @example { batch: async (request) => [await request.clone().json()].flat().length }
   */
  readonly costs?: CustomCosts | undefined;
  /**
   * The functions for `settle: "custom:NAME"`. A function gets the origin's response and a
   * {@link SettleContext}. It returns the final cost, or undefined if the cost is unknown, or a
   * promise of either.
   *
   * @default none
   * @example { usage: async (response) => (await response.json()).usage?.total_tokens }
   */
  readonly settle?: CustomSettles | undefined;
  /**
   * The functions for `response: "custom:NAME"`. A function gets a {@link Denial} and a
   * {@link DenialContext}. It returns a Response, or a promise of it, with the status 200, or from 400
   * to 599.
   *
   * @default none
   * @example { page: ({ retryAfterSeconds }) => new Response("Slow down.", { status: 429 }) }
   */
  readonly responses?: CustomResponses | undefined;
}

const NAME = faultText("the NAME in custom:NAME: one or more of A-Z, a-z, 0-9 and _");

/** Returns the schema of functions by their names. */
function functionsSchema<Function>(name: string, example: string) {
  return v.optional(
    anyMapOf(
      textMatching(/^\w+$/, NAME),
      v.custom<Function>(
        (value) => typeof value === "function",
        faultText(() => `a function, such as ${example}`),
      ),
      faultText(
        () => `an object of functions, such as { ${name}: ${example.replace(/=> .*/, "=> …")} }`,
      ),
    ),
  );
}

/** The output has Maps, because in a Map `__proto__` and `constructor` are ordinary names. */
export const CustomSchema = fields(
  {
    keys: functionsSchema<CustomKey>(
      faultText("plan"),
      faultText('(request) => request.headers.get("x-plan")'),
    ),
    costs: functionsSchema<CustomCost>(faultText("depth"), faultText("async (request) => 5")),
    settle: functionsSchema<CustomSettle>(faultText("usage"), faultText("async (response) => 5")),
    responses: functionsSchema<CustomResponse>(
      faultText("page"),
      faultText('() => new Response("Slow down.", { status: 429 })'),
    ),
  },
  faultText("{ keys: { plan: (request) => … } }"),
);

/** The checked form of {@link CustomInput}. */
export interface CustomFunctions {
  readonly keys?: ReadonlyMap<string, CustomKey> | undefined;
  readonly costs?: ReadonlyMap<string, CustomCost> | undefined;
  readonly settle?: ReadonlyMap<string, CustomSettle> | undefined;
  readonly responses?: ReadonlyMap<string, CustomResponse> | undefined;
}
