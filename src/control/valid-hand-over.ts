import {
  type LimitedClient,
  type MinuteSums,
  noRequests,
  noRuleSums,
  noStoreSums,
  type RuleSums,
} from "../statistics/sums.ts";
import type { HandOver } from "./protocol.ts";

/** More minutes than this in one hand-over are ignored. A day has 1440. */
const MAX_MINUTES = 1500;
/** More rules than this in one minute are ignored. */
export const MAX_RULES = 1000;
/** More clients than this in one hand-over are ignored. */
const MAX_HANDED_CLIENTS = 1000;
const MAX_SOURCE_LENGTH = 64;
const MAX_ISOLATES = 1_000_000;
/** The longest name that a rule may have in a configuration. */
const MAX_NAME_LENGTH = 64;
/** Identities have 22 characters. */
const MAX_IDENTITY_LENGTH = 64;

type Fields = Readonly<Record<string, unknown>>;

/**
 * Returns a hand-over that contains only valid values, with missing numbers as 0. Only Weir calls the
 * objects, but during a deploy the caller may be a newer or an older version.
 *
 * @throws {TypeError} if it does not say which hand-over of which source it is
 */
export function validHandOver(value: unknown): HandOver {
  const fields = fieldsOf(value);
  const { source, sequence } = fields;
  if (typeof source !== "string" || source === "" || source.length > MAX_SOURCE_LENGTH) {
    throw new TypeError(`source must be a text of 1 to ${MAX_SOURCE_LENGTH} characters.`);
  }
  if (!Number.isSafeInteger(sequence)) throw new TypeError("sequence must be a whole number.");
  const isolates = Math.min(Math.max(Math.floor(count(fields.isolates)), 1), MAX_ISOLATES);
  const overridesVersion = count(fields.overridesVersion);
  const breakerOpen = fields.breakerOpen === true;
  return {
    source,
    sequence: sequence as number,
    isolates,
    newIsolates:
      fields.newIsolates === undefined
        ? Number(overridesVersion === 0)
        : Math.min(Math.floor(count(fields.newIsolates)), MAX_ISOLATES),
    breakerOpen,
    openBreakers:
      fields.openBreakers === undefined
        ? Number(breakerOpen)
        : Math.min(Math.floor(count(fields.openBreakers)), isolates),
    minutes: listOf(fields.minutes).slice(0, MAX_MINUTES).flatMap(minuteOf),
    clients: listOf(fields.clients).slice(0, MAX_HANDED_CLIENTS).flatMap(clientOf),
    overridesVersion,
  };
}

function minuteOf(value: unknown): MinuteSums[] {
  const fields = fieldsOf(value);
  if (!Number.isSafeInteger(fields.minute)) return [];
  const requests = numbers(noRequests(), fields.requests);
  const store = numbers(noStoreSums(), fields.store);
  const rules = Object.entries(fieldsOf(fields.rules))
    .filter(([name]) => name !== "" && name.length <= MAX_NAME_LENGTH)
    .slice(0, MAX_RULES)
    .map(([name, sums]): [string, RuleSums] => [name, ruleSumsOf(sums)]);
  // Unlike an assignment, fromEntries creates a field also for the name __proto__.
  return [{ minute: fields.minute as number, requests, store, rules: Object.fromEntries(rules) }];
}

function ruleSumsOf(value: unknown): RuleSums {
  const sums = numbers(noRuleSums(), value);
  return { ...sums, peak: Math.min(sums.peak, 1) };
}

function clientOf(value: unknown): LimitedClient[] {
  const { rule, client, ...fields } = fieldsOf(value);
  if (!isText(rule, MAX_NAME_LENGTH) || !isText(client, MAX_IDENTITY_LENGTH)) return [];
  const limited = count(fields.count);
  if (limited === 0) return [];
  return [
    {
      rule,
      client,
      count: limited,
      error: Math.min(count(fields.error), limited),
      lastAt: count(fields.lastAt),
      shadow: fields.shadow === true,
    },
  ];
}

function isText(value: unknown, maxLength: number): value is string {
  return typeof value === "string" && value !== "" && value.length <= maxLength;
}

/** Returns sums with the fields of `zeros`, and with valid numbers. */
function numbers<Sums extends object>(zeros: Sums, value: unknown): Sums {
  const values = fieldsOf(value);
  const valid = Object.entries(zeros).map(([field, zero]) => {
    const given = values[field];
    if (!Array.isArray(zero)) return [field, count(given)];
    return [field, zero.map((_, index) => count(listOf(given)[index]))];
  });
  return Object.fromEntries(valid) as Sums;
}

/** Returns a number from 0 to 2^53 - 1, and 0 for every other value. */
function count(value: unknown): number {
  if (typeof value !== "number" || !(value > 0)) return 0;
  return Math.min(value, Number.MAX_SAFE_INTEGER);
}

function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null ? (value as Fields) : {};
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
