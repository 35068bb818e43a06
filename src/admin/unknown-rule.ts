import type { Config } from "../config/schema.ts";
import { IDENTITY_FORM, isIdentity } from "../request/identity.ts";
import { OperationError } from "./operations.ts";

/** The number of names that the message lists. */
const MAX_NAMES = 5;

/** Creates the error for the name of a rule that is not in the configuration. It lists the nearest names. */
export function unknownRule(given: string, { rules }: Pick<Config, "rules">): OperationError {
  const names = rules.map(({ name }) => name);
  const nearest = [...names].sort((a, b) => likeness(given, b) - likeness(given, a));
  const listed = nearest.slice(0, MAX_NAMES).join(", ") || "there are none";
  const which = names.length > MAX_NAMES ? "The nearest names are" : "The rules are";
  return new OperationError(
    "not-found",
    `The configuration has no rule of this name. ${which}: ${listed}.`,
  );
}

/** How many pairs of neighbouring characters two names share, from 0 to 1. */
function likeness(one: string, other: string): number {
  const [pairs, others] = [pairsOf(one), pairsOf(other)];
  const shared = [...pairs].filter((pair) => others.has(pair)).length;
  return (2 * shared) / (pairs.size + others.size);
}

function pairsOf(name: string): Set<string> {
  const text = ` ${name.toLowerCase()} `;
  return new Set(Array.from({ length: text.length - 1 }, (_, at) => text.slice(at, at + 2)));
}

/** Creates the error for the id of an override that does not exist. */
export function noOverride(id: string, config: Pick<Config, "rules">): OperationError {
  const [rule = "", ...rest] = id.split(":");
  if (!config.rules.some(({ name }) => name === rule)) return unknownRule(rule, config);
  if (rest.length === 0) {
    return new OperationError("not-found", `The rule ${rule} has no override for all clients.`);
  }
  const client = rest.join(":");
  const whose = isIdentity(client)
    ? `the client ${client}`
    : `this client, which is not ${IDENTITY_FORM}`;
  return new OperationError("not-found", `The rule ${rule} has no override for ${whose}.`);
}
