import { domainToASCII } from "node:url";

/** How requests reach Weir, and where Weir forwards them. */
export const TEMPLATES = ["route", "custom-domain", "service", "hono"] as const;
export type Template = (typeof TEMPLATES)[number];

/** The templates that create a new project. */
export type NewTemplate = Exclude<Template, "hono">;

export const STORES = ["durable-object", "upstash"] as const;
export type StoreName = (typeof STORES)[number];

/** The texts that a template needs, all valid. */
export interface Texts {
  /** The name of the Worker and of the npm package. */
  readonly name: string;
  /** The host name whose requests Weir limits. */
  readonly host: string;
  /** The Cloudflare zone of the host. */
  readonly zone: string;
  /** The origin's URL. */
  readonly origin: string;
  /** The name of the origin's Worker. */
  readonly service: string;
}

/** A text that the user gives by a flag or at a prompt. */
export interface Field {
  readonly key: keyof Texts;
  /** The flag's value in the help. */
  readonly placeholder: string;
  /** For the help and the prompt. */
  readonly description: string;
  /** The templates that use the text. The flag is refused for all others. */
  readonly templates: readonly NewTemplate[];
  /**
   * @param texts the texts that are known already
   * @param folder the path of the project's folder
   */
  readonly initial: (texts: Partial<Texts>, folder: string) => string;
  /** Returns the reason why a text is refused, with its remedy; undefined if the text is valid. */
  readonly fault: (text: string, texts: Partial<Texts>) => string | undefined;
}

/** The longest name: wrangler appends `-production`, and a Worker's name has at most 63 characters. */
const MAX_NAME = 50;

/** The fields in the order of the prompts. A field may use the texts of earlier fields. */
export const FIELDS: readonly Field[] = [
  {
    key: "name",
    placeholder: "name",
    description: "the name of the Worker",
    templates: ["route", "custom-domain", "service"],
    initial: (_, folder) => nameFrom(folder),
    fault: (text) =>
      /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/.test(text) && text.length <= MAX_NAME
        ? undefined
        : `A Worker's name has 1 to ${MAX_NAME} characters of a-z, 0-9 and -, and does not begin or end with -.`,
  },
  {
    key: "host",
    placeholder: "host",
    description: "the host name whose requests Weir limits, such as api.example.com",
    templates: ["route", "custom-domain", "service"],
    initial: () => "api.example.com",
    fault: hostFault,
  },
  {
    key: "zone",
    placeholder: "domain",
    description: "the Cloudflare zone of the host, such as example.com",
    templates: ["route"],
    initial: ({ host = "example.com" }) => zoneOf(host),
    fault: (text, { host }) => {
      const fault = hostFault(text);
      if (fault || host === undefined || host === text || host.endsWith(`.${text}`)) return fault;
      return `The host ${host} is not in the zone ${text}. A zone is the end of its host names, such as ${zoneOf(host)}.`;
    },
  },
  {
    key: "origin",
    placeholder: "url",
    description: "the URL to which Weir forwards requests",
    templates: ["custom-domain"],
    initial: () => "https://origin.example.com",
    fault: originFault,
  },
  {
    key: "service",
    placeholder: "name",
    description: "the name of the Worker to which Weir forwards requests",
    templates: ["service"],
    initial: ({ name }) => (name === "my-api" ? "my-origin" : "my-api"),
    fault: (text, { name }) => {
      if (!/^[a-z0-9][a-z0-9_-]{0,62}$/.test(text)) {
        return "A Worker's name has 1 to 63 characters of a-z, 0-9, - and _, and begins with a letter or a digit.";
      }
      return text === name
        ? "This is the name of Weir's own Worker. Name the Worker that answers the requests."
        : undefined;
    },
  },
];

/** Turns the name of a folder into the name of a Worker. */
function nameFrom(folder: string): string {
  const last = folder.split(/[/\\]/).filter(Boolean).at(-1) ?? "";
  // NFKD separates letters from their accents, so that `ü` becomes `u`.
  const letters = last
    .normalize("NFKD")
    .replace(/\p{Mark}+/gu, "")
    .toLowerCase();
  const name = letters.replace(/[^a-z0-9]+/g, "-").replace(/^-+/, "");
  return name.slice(0, MAX_NAME).replace(/^-+|-+$/g, "") || "my-weir";
}

function hostFault(text: string): string | undefined {
  if (/^[a-z]+:\/\//i.test(text) || /[/:?#@]/.test(text)) {
    return "A host name has no scheme, port or path, as in api.example.com.";
  }
  if (text.includes("*")) {
    return "The starter takes one host name without *. Add more routes in wrangler.toml.";
  }
  const ascii = domainToASCII(text);
  if (ascii && ascii !== text) return `Write the host name as ${ascii}.`;
  const labels = text.split(".");
  const isValid = labels.every((label) => /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/.test(label));
  const isName = labels.length > 1 && !/^\d+$/.test(labels.at(-1) ?? "") && text.length <= 253;
  return isValid && isName ? undefined : "This is not a host name, such as api.example.com.";
}

function originFault(text: string, { host }: Partial<Texts>): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !["http:", "https:"].includes(url.protocol)) {
    return "The origin is not an http or https URL, such as https://origin.example.com.";
  }
  if (url.username || url.password || url.search || url.hash) {
    return "The origin's URL has no user, password, query or fragment, as in https://origin.example.com/api.";
  }
  return url.hostname === host
    ? `The origin is ${host} itself, so requests would return to Weir. Name the host of the origin's server.`
    : undefined;
}

/**
 * Guesses the zone of a host name: its last two labels, or three for endings such as `co.uk`. A
 * list of all such endings would be larger than the starter.
 */
function zoneOf(host: string): string {
  const labels = host.split(".");
  const [second = "", top = ""] = labels.slice(-2);
  const hasLongEnding = top.length === 2 && second.length <= 3;
  return labels.slice(hasLongEnding ? -3 : -2).join(".");
}
