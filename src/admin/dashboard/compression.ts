import type { MiddlewareHandler } from "hono";

/**
 * Lets the runtime compress pages and assets for clients that accept gzip. The Workers runtime compresses a body
 * if the response has the header field Content-Encoding.
 */
export const compressed: MiddlewareHandler = async (c, next) => {
  await next();
  if (c.res.body === null) return;
  c.header("Vary", "Accept-Encoding", { append: true });
  if (acceptsGzip(acceptedBy(c.req.raw))) c.header("Content-Encoding", "gzip");
};

/** Returns the field as the client has sent it. Cloudflare replaces it, and keeps the original value. */
function acceptedBy({ headers, cf }: Request): string {
  const original = (cf as { readonly clientAcceptEncoding?: unknown } | undefined)
    ?.clientAcceptEncoding;
  return typeof original === "string" ? original : (headers.get("accept-encoding") ?? "");
}

/** Whether a client prefers gzip to a body that is not compressed (RFC 9110, 12.5.3). */
function acceptsGzip(field: string): boolean {
  const weights = new Map<string, number>();
  for (const item of field.toLowerCase().split(",")) {
    const [coding = "", ...parameters] = item.split(";").map((part) => part.trim());
    const weight = parameters.find((each) => each.startsWith("q="))?.slice(2) ?? "1";
    weights.set(coding, Number(weight));
  }
  const gzip = weights.get("gzip") ?? weights.get("x-gzip") ?? weights.get("*") ?? 0;
  // A client that does not name identity accepts it, but prefers what it names.
  return gzip > 0 && gzip >= (weights.get("identity") ?? 0);
}
