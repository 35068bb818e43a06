import type { MiddlewareHandler } from "hono";

/** `gzip` in Accept-Encoding, unless its weight is 0. */
const GZIP = /(?:^|,)\s*gzip\s*(?:;\s*q=(?!0(?:\.0*)?\s*(?:,|$))[^,]*)?(?:,|$)/i;

/**
 * Lets the runtime compress pages and assets for clients that accept gzip. The Workers runtime compresses a body
 * if the response has the header field Content-Encoding.
 */
export const compressed: MiddlewareHandler = async (c, next) => {
  await next();
  if (c.res.body === null) return;
  c.header("Vary", "Accept-Encoding", { append: true });
  if (GZIP.test(c.req.header("accept-encoding") ?? "")) c.header("Content-Encoding", "gzip");
};
