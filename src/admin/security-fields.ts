const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join("; ");

/** The header fields of all answers below `/_weir/`. */
const FIELDS = {
  "Content-Security-Policy": POLICY,
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
  "Cross-Origin-Resource-Policy": "same-origin",
  // Browsers send the header Origin with forms only if the policy is at least `same-origin`.
  "Referrer-Policy": "same-origin",
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
};

/**
 * Adds the header fields that keep caches and other sites away from an answer. An asset may have its own
 * Cache-Control.
 */
export function withSecurityFields(response: Response): Response {
  const secured = new Response(response.body, response);
  for (const [name, value] of Object.entries(FIELDS)) secured.headers.set(name, value);
  if (!secured.headers.has("Cache-Control")) secured.headers.set("Cache-Control", "no-store");
  return secured;
}
