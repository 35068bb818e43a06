import { createHmac } from "node:crypto";
import type { ConfigInput } from "../../../src/config/index.ts";
import type { Markers } from "./leaks.ts";

/** Texts of clients, and secrets of the Worker, that must not appear in any output. */
export const MARKERS = {
  "an IPv4 address": "203.0.113.177",
  "an IPv6 address": "2001:db8:5ec:7e7::abcd",
  "an IPv6 network": "2001:db8:5ec:7e7",
  "an API key": "api-key-5e2c91d47bb0",
  "an API key that is not ASCII": "clé-5e2c91d47bb1-ü",
  "a cookie": "session-c19a40f6d2e8",
  "a query parameter": "query-90b1e7ac55f3",
  "a path parameter": "param-2cd8f1e09a74",
  "a JWT's subject": "subject-71be3c0fd952",
  "a custom key": "tenant-e84d60a2b7c1",
  "a password": "password-0f9c7ad41e63",
  "an exempt client's token": "exempt-b6d83e15f07a",
  "the JWT's secret": "jwt-secret-48a1f7c0e2d95b36",
  "the store's token": "store-token-d70c2f98e1ab",
} as const satisfies Markers;

/** A quota that is small enough for some requests to be denied. */
const QUOTA = { limit: 3, window: "52w" } as const;
const at = (path: string) => ({ name: path.slice(1), match: { paths: [path] }, ...QUOTA });

export const RULES: ConfigInput["rules"] = [
  { ...at("/ip"), key: "ip" },
  { ...at("/header"), key: "header:x-api-key" },
  { ...at("/cookie"), key: "cookie:session" },
  { ...at("/query"), key: "query:token" },
  { name: "param", match: { paths: ["/param/:id"] }, key: "param:id", ...QUOTA },
  { ...at("/jwt"), key: "jwt:sub" },
  { ...at("/custom"), key: "custom:tenant" },
  { ...at("/basic"), key: "header:authorization" },
  { ...at("/both"), key: ["header:x-api-key", "cookie:session", "ip"] },
  { ...at("/exempt"), exempt: { headers: { "x-internal": { secret: "INTERNAL" } } } },
  { ...at("/tier"), tiers: { by: "header:x-plan", limits: { pro: { limit: 5, window: "52w" } } } },
  {
    name: "leased",
    match: { paths: ["/leased"] },
    key: "header:x-api-key",
    limit: 1000,
    window: "52w",
  },
  { ...at("/banned"), key: "header:x-api-key", ban: "1h" },
  { ...at("/shadow"), key: "cookie:session", mode: "shadow" },
  { ...at("/rolling"), key: "query:token", capacity: 5, maxReserved: 5 },
  { ...at("/sharded"), key: "header:x-api-key", shards: 2 },
  { ...at("/charged"), key: "ip", cost: "header:x-cost", count: { status: [401] } },
  { ...at("/closed"), key: "header:x-api-key", onError: "closed" },
  { ...at("/local"), key: "cookie:session", onError: "local" },
];

const PATHS = RULES.map(({ match }) => match?.paths?.[0] as string);

export interface Sent {
  readonly path: string;
  readonly headers: Record<string, string>;
}

/**
 * Returns the requests of one client, one for each rule. Each request contains markers of every
 * kind.
 */
export function requestsOf(address: string): Sent[] {
  const token = jwt({ sub: MARKERS["a JWT's subject"] });
  const password = Buffer.from(`user:${MARKERS["a password"]}`).toString("base64");
  return PATHS.map((path) => ({
    path: `${path.replace(":id", MARKERS["a path parameter"])}?token=${MARKERS["a query parameter"]}`,
    headers: {
      "CF-Connecting-IP": address,
      "X-Api-Key":
        path === "/sharded"
          ? latin1(MARKERS["an API key that is not ASCII"])
          : MARKERS["an API key"],
      "X-Tenant": MARKERS["a custom key"],
      "X-Plan": "pro",
      "X-Internal": MARKERS["an exempt client's token"],
      Cookie: `session="${MARKERS["a cookie"]}"`,
      Authorization: path === "/basic" ? `Basic ${password}` : `Bearer ${token}`,
    },
  }));
}

/**
 * Returns the UTF-8 bytes of a text as a text with one character for each byte, because Node sends
 * fields in Latin-1.
 */
function latin1(text: string): string {
  return Buffer.from(text).toString("latin1");
}

function jwt(claims: object): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const signed = `${encode({ alg: "HS256", typ: "JWT" })}.${encode(claims)}`;
  const signature = createHmac("sha256", MARKERS["the JWT's secret"]).update(signed);
  return `${signed}.${signature.digest("base64url")}`;
}
