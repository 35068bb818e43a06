import { faultText } from "./fault-text.ts";
import { bindingName, fields } from "./fields.ts";

const BINDING = faultText("the name of a ratelimits binding in wrangler.toml");
const NATIVE_LIMITER = faultText('{ binding: "NAME" }');

/**
 * Cloudflare's own rate limiter. Rules with `onError: "local"` also call it while the store fails.
 */
export interface NativeLimiterInput {
  /**
   * The name of a `ratelimits` binding in wrangler.toml.
   *
   * @example "NATIVE_LIMITER"
   */
  readonly binding: string;
}

export const NativeLimiterSchema = fields({ binding: bindingName(BINDING) }, NATIVE_LIMITER);
