import * as v from "valibot";
import { type Conditions, type ConditionsInput, conditions } from "./conditions.ts";
import { faultText } from "./fault-text.ts";
import { fields } from "./fields.ts";

/** The requests that a rule counts. All given conditions hold for them, and `except` does not. */
export interface MatchInput extends ConditionsInput {
  /**
   * The rule does not count requests for which all of these conditions hold. At least one condition
   * is required.
   *
   * @default none
   * @example { paths: ["/v1/health"] }
   */
  readonly except?: ConditionsInput | undefined;
}

const AT_LEAST_ONE = faultText(() => `at least one of ${Object.keys(conditions).join(", ")}`);

export const MatchSchema = fields({
  ...conditions,
  except: v.optional(
    v.pipe(
      fields(conditions),
      // Without a condition, `except` would hold for every request, and the rule would count no
      // request.
      v.check((except) => Object.values(except).some((list) => list !== undefined), AT_LEAST_ONE),
    ),
  ),
});

/** {@link MatchInput}, parsed. */
export interface Match extends Conditions {
  readonly except?: Conditions | undefined;
}
