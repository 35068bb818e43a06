import fc from "fast-check";
import { limitedResponse } from "../../src/http/responses.ts";
import { denial } from "../arbitraries/denial.ts";
import { createAsyncTarget } from "../property.ts";

const REQUEST = { method: "GET", headers: new Headers() } as Request;

/** The target for the default body of a 429. */
export const problemTarget = createAsyncTarget(
  "problem",
  "a denial's body is problem+json that names exactly the violated policies",
  fc.record({ denial }),
  async ({ denial: { limited, quotas } }) => {
    const { response: _, ...rule } = limited.deniedBy.appliedRule.rule;
    const appliedRule = { ...limited.deniedBy.appliedRule, rule };
    const deniedBy = { ...limited.deniedBy, appliedRule };
    const denial = { ...limited, verdicts: [deniedBy], deniedBy };
    const response = limitedResponse(REQUEST, denial, "none");
    const problem = JSON.parse(await response.text());
    const violated = quotas.filter((quota) => quota.violated).map(({ policy }) => policy);
    if (JSON.stringify(problem["violated-policies"]) !== JSON.stringify(violated)) {
      throw new Error(`names ${problem["violated-policies"]}, but expected ${violated}`);
    }
    const seconds = response.headers.get("retry-after");
    const isNever = limited.retryAfterMs === undefined;
    const end = isNever
      ? / admits (?:no request|at most \d+ at once)\.$/
      : ` Try again in ${seconds} s.`;
    if (isNever !== (seconds === null)) throw new Error(`Retry-After: ${seconds}`);
    if (typeof end === "string" ? !problem.detail.endsWith(end) : !end.test(problem.detail)) {
      throw new Error(problem.detail);
    }
    const { status, type, title } = problem;
    if (status !== 429 || !URL.canParse(type) || !title) throw new Error(JSON.stringify(problem));
  },
);
