import { isRecord } from "../fields.ts";
import { exemptHint } from "./object-hint.ts";

/** Suggests a cure without the given value, because the value may be a secret. */
export function secretHint(names: readonly string[], given: unknown): string | undefined {
  if (names.at(-2) === "headers" && isRecord(given)) {
    return 'write the name of a secret of the Worker, such as { secret: "INTERNAL_TOKEN" }, not the secret itself';
  }
  if (names.at(-1) === "exempt") return exemptHint(given);
  return names.at(-1) === "secret" && typeof given === "string"
    ? 'write the name of the secret, such as "JWT_SECRET", not the secret itself'
    : undefined;
}

/** Suggests the two forms of `jwt` for a text. */
export function jwtHint(given: unknown): string | undefined {
  return typeof given === "string"
    ? 'write { jwks: "https://…" } for public keys, or { secret: "JWT_SECRET" } with the name of a secret'
    : undefined;
}

/** Suggests a name of a tier, without the given name, because it may be a credential. */
export function tierNameHint(given: string): string | undefined {
  if (given.startsWith("*.")) {
    return "a tier is a single host. For all hosts below a name, add a rule with match.hosts";
  }
  if (/^[a-z\d.-]+\.[a-z]+:\d+$/i.test(given)) return "write the host without its port";
  return /[^ -~]/.test(given) && given.includes(".")
    ? "write a host as in URLs: in Punycode, such as xn--bcher-kva.example"
    : undefined;
}
