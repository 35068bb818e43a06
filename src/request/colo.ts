/** Matches the form that Cloudflare gives to `cf.colo`. */
const COLO = /^[A-Z0-9]{1,8}$/i;

/**
 * Returns the data centre that has received a request, such as `FRA`.
 *
 * @param cf the field `cf` of the request, which may have any value
 * @returns undefined for a text of another form, because Weir stores and logs no text that a client could choose
 */
export function coloOf(cf: unknown): string | undefined {
  const colo = (cf as { colo?: unknown } | null | undefined)?.colo;
  return typeof colo === "string" && COLO.test(colo) ? colo : undefined;
}
