import { fields, parsed } from "./fields.ts";

const BINDING = "the name of a ratelimits binding in wrangler.toml";
const FLOOR = '{ binding: "NAME" }';

/** Cloudflare's own limiter, which rules with `onError: "local"` ask while the store is away. */
export const NativeLimiterSchema = fields(
  { binding: parsed((text) => (/^[A-Za-z_]\w*$/.test(text) ? text : undefined), BINDING) },
  FLOOR,
);
