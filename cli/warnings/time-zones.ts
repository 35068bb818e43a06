import type { Rule } from "../../src/config/rule.ts";
import { offsetAt } from "../../src/config/time-zone.ts";
import type { LocalFinding } from "../finding.ts";

/** Abbreviations that are names of time zones, and a place with this time in winter. */
const ABBREVIATIONS: ReadonlyMap<string, string> = new Map([
  ["EST", "America/New_York"],
  ["MST", "America/Denver"],
  ["CET", "Europe/Berlin"],
  ["MET", "Europe/Berlin"],
  ["EET", "Europe/Athens"],
  ["WET", "Europe/Lisbon"],
]);

/** A time in winter and a time in summer. These zones have the same offsets in every year. */
const WINTER = Date.UTC(2026, 0, 1);
const SUMMER = Date.UTC(2026, 6, 1);

/** Warns of time zones that are valid, but have another offset than their names suggest. */
export function timeZoneWarnings({ name, windows, tiers }: Rule, place: string): LocalFinding[] {
  const all = [...windows, ...[...(tiers?.windows.values() ?? [])].flat()];
  const timeZone = all.find(({ calendar }) => calendar)?.calendar?.timeZone ?? "UTC";
  const path = `${place}.timeZone`;
  const [, sign, hours] = /^Etc\/GMT([+-])0?([1-9]\d?)$/i.exec(timeZone) ?? [];
  if (sign !== undefined) {
    const opposite = `Etc/GMT${sign === "+" ? "-" : "+"}${hours}`;
    return [
      {
        code: "inverted-time-zone",
        severity: "warning",
        path,
        message: `The windows of the rule "${name}" begin in ${offsetOf(timeZone)}, because the signs in names such as ${timeZone} are inverted`,
        cure: `Write the name of a place, such as "Europe/Berlin", or "${opposite}" if you mean UTC${sign}${hours}`,
      },
    ];
  }
  const city = ABBREVIATIONS.get(timeZone.toUpperCase());
  // Some runtimes take such a name for the name of a place that has summer time.
  if (city === undefined || offsetAt(timeZone, WINTER) !== offsetAt(timeZone, SUMMER)) return [];
  return [
    {
      code: "fixed-time-zone",
      severity: "warning",
      path,
      message: `The windows of the rule "${name}" begin in ${offsetOf(timeZone)} all year, because ${timeZone} has no summer time`,
      cure: `Write the name of a place, such as "${city}"`,
    },
  ];
}

/** Returns an offset from UTC in whole hours, such as `UTC-5`. */
function offsetOf(timeZone: string): string {
  const hours = offsetAt(timeZone, WINTER) / 3_600_000;
  return `UTC${hours < 0 ? "-" : "+"}${Math.abs(hours)}`;
}
