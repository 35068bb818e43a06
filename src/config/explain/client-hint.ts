import { isRecord } from "../fields.ts";
import { bareName, nearestName } from "./given-value.ts";

// Suggestions for conditions on header fields, query parameters, countries, operators and bots.

/** Suggests an object for `headers` or `query`: `{ "x-plan": true }` instead of `["x-plan"]`. */
export function namedHint(field: string, given: unknown): string | undefined {
  const names = [given].flat();
  const areNames = names.every((name) => typeof name === "string" && /^[\w-]{1,64}$/.test(name));
  if (names.length === 0 || !areNames) return undefined;
  const written = names.map((name) => `${JSON.stringify(name)}: true`).join(", ");
  return `write ${field}: { ${written} }, which is true if the request has ${names.length > 1 ? "them" : "it"}`;
}

/** Suggests the value of a header field or a query parameter, without the given text. */
export function namedValueHint(given: unknown): string | undefined {
  if (typeof given === "number") return `write a text: ${JSON.stringify(String(given))}`;
  if (given === null || given === undefined) return "write false for a field that is absent";
  if (given === "")
    return "write true for a field that is present, and false for one that is absent";
  if (given === "*") return "write true for any value";
  if (typeof given === "string") {
    return given.trim() === given ? undefined : "remove the spaces at the ends";
  }
  if (given instanceof RegExp) return 'write a text, or { prefix: "…" }. There are no patterns';
  if (typeof given === "function") return 'write a text, or { prefix: "…" }';
  if (!isRecord(given)) return undefined;
  if ("secret" in given) {
    return "for requests that have a secret, write exempt: { headers: { NAME: { secret } } }, which compares in constant time";
  }
  if (given.prefix === "") return "write a text in prefix, or true for any value";
  const [name = ""] = Object.keys(given);
  switch (bareName(name)) {
    case "startswith":
    case "begins":
    case "beginswith":
      return 'write { prefix: "…" }';
    case "equals":
    case "eq":
    case "is":
    case "value":
    case "exact":
      return "write the text itself";
    case "in":
    case "oneof":
    case "anyof":
      return "write a list of texts";
    case "exists":
    case "present":
      return "write true or false";
    case "not":
    case "ne":
      return "write the text in match.except";
    default:
      return undefined;
  }
}

let names: Intl.DisplayNames | undefined;

/** Returns the English name of a country. ICU's names are loaded at the first call, which takes 20 ms. */
function nameOf(code: string): string | undefined {
  names ??= new Intl.DisplayNames("en", { type: "region", fallback: "none" });
  return names.of(code);
}

/** Other names of countries, as users write them. */
const COUNTRY_ALIASES: Readonly<Record<string, string>> = {
  uk: "GB",
  greatbritain: "GB",
  england: "GB",
  usa: "US",
  america: "US",
  korea: "KR",
  holland: "NL",
  czechrepublic: "CZ",
  turkey: "TR",
  tor: "T1",
};

/**
 * Suggests codes of countries.
 *
 * @param isElement whether the value is an element of the list
 */
export function countryHint(given: unknown, isElement: boolean): string | undefined {
  const texts = [given].flat();
  if (texts.some((text) => /^(eu|europe|europeanunion)$/i.test(String(text)))) {
    return 'write the code of each country, such as "DE", "FR"';
  }
  if (texts.some((text) => String(text).toUpperCase() === "XX")) {
    return "remove XX: if the country is unknown, match holds anyway, and except never does";
  }
  const found = texts.map(countryCodeOf);
  if (found.length === 0 || found.includes(undefined)) return undefined;
  const written = found.map((code) => JSON.stringify(code)).join(", ");
  return `write ${isElement ? written : `[${written}]`}`;
}

/** Returns the code of a country that is given by its code in any case or by its English name. */
function countryCodeOf(given: unknown): string | undefined {
  if (typeof given !== "string") return undefined;
  const bare = bareName(given);
  if (Object.hasOwn(COUNTRY_ALIASES, bare)) return COUNTRY_ALIASES[bare];
  const isCode = /^[a-z]{2}$/.test(bare) && isCountryCode(bare.toUpperCase());
  return isCode ? bare.toUpperCase() : codesByName().get(bare);
}

let codes: ReadonlyMap<string, string> | undefined;

/**
 * Returns the codes of all countries, by their English names. The codes are computed only once,
 * because the computation takes several milliseconds, and a list may have thousands of faults.
 */
function codesByName(): ReadonlyMap<string, string> {
  if (codes) return codes;
  const letters = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZ"];
  const pairs = letters.flatMap((first) => letters.map((second) => first + second));
  codes = new Map(pairs.filter(isCountryCode).map((code) => [bareName(nameOf(code) ?? ""), code]));
  return codes;
}

/** Whether a code of two letters is in ISO 3166-1. Withdrawn codes such as `DD` do not count. */
export function isCountryCode(code: string): boolean {
  const name = nameOf(code);
  if (name === undefined || /^(Unknown Region|Pseudo-)/.test(name)) return false;
  return new Intl.Locale(`und-${code}`).region === code;
}

/** Suggests numbers of operators: 13335 instead of `"AS13335"`. */
export function asnHint(given: unknown, isElement: boolean): string | undefined {
  if ([given].flat().includes(0)) return "write the number of an operator, such as 13335";
  const numbers = [given]
    .flat()
    .map((each) => /^\s*(?:asn?\s*)?(\d{1,10})\s*$/i.exec(String(each)));
  if (numbers.length === 0 || numbers.includes(null)) return undefined;
  const written = numbers.map((number) => Number(number?.[1])).join(", ");
  return `write ${isElement ? written : `[${written}]`}`;
}

const CATEGORIES = [
  ...["Academic Research", "Accessibility", "Advertising & Marketing", "Aggregator"],
  ...["AI Assistant", "AI Crawler", "AI Search", "Archiver", "Feed Fetcher"],
  ...["Monitoring & Analytics", "Page Preview", "Search Engine Crawler"],
  ...["Search Engine Optimization", "Security", "Social Media Marketing", "Webhooks", "Other"],
];
const SEARCH = /^(google|googlebot|bing|bingbot|search|searchengines?|crawlers?|seo)$/;

/** Suggests `"verified"`, or a category of bots. */
export function botHint(given: unknown): string | undefined {
  if (given === true) return 'write "verified"';
  const texts = [given].flat();
  const found = texts.map((text) => {
    const bare = bareName(String(text));
    if (SEARCH.test(bare)) return "Search Engine Crawler";
    const same = CATEGORIES.find((category) => bareName(category) === bare);
    return same ?? (typeof text === "string" ? nearestName(text, CATEGORIES) : undefined);
  });
  if (found.length === 0) return undefined;
  if (!found.includes(undefined)) return `write ${JSON.stringify(found)}`;
  return /^(good|known|true|yes|all|any|bots?|verified.*)$/.test(bareName(String(given)))
    ? 'write "verified"'
    : undefined;
}
