/**
 * Reads a time with its zone, such as `2026-12-01T08:00:00Z`. `Date.parse` alone takes the 30th of February for
 * the 2nd of March.
 *
 * @returns milliseconds since the Unix epoch; NaN if there is no such time
 */
export function parseIsoTime(text: string): number {
  const day = text.slice(0, 10);
  const midnight = Date.parse(`${day}T00:00:00Z`);
  if (Number.isNaN(midnight) || !new Date(midnight).toISOString().startsWith(day))
    return Number.NaN;
  return Date.parse(text);
}
