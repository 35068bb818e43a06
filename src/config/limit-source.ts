import * as v from "valibot";
import { type DurationInput, durationUpTo } from "./duration.ts";
import { faultText } from "./faults.ts";
import {
  checkOf,
  fields,
  integer,
  isRecord,
  type LiteralUnion,
  parsed,
  parsedText,
} from "./fields.ts";
import { type KeyPart, parseAlternatives } from "./key.ts";

/** A limit that is a number of each client: from your function, or from a claim of the client's verified token. */
export interface LimitSourceInput {
  /**
   * `"custom:NAME"`: the result of your function `custom.limits.NAME`, a top-level field. `"jwt:CLAIM"`: a claim of the
   * client's verified token, or a JSON Pointer to it. A number must be whole, from 0. A claim may also be a text of
   * digits.
   *
   * @example "custom:quota"
   * @example "jwt:/limits/rpm"
   */
  readonly from: LiteralUnion<"custom:quota" | "jwt:limit" | "jwt:/limits/rpm">;
  /** The highest number of a client. A higher number counts as this one. */
  readonly max: number;
  /**
   * The number of clients without one: an unknown client, or a function that throws, is too late, or returns no
   * number. If a function fails later, a client keeps its last number.
   */
  readonly default: number;
  /**
   * The time for which an isolate uses a result of the function, from `"0s"` to `"1h"`, written like `window`.
   *
   * @default "1m"
   */
  readonly cacheFor?: DurationInput | "0s" | undefined;
}

/** {@link LimitSourceInput}, parsed. */
export interface LimitSource {
  readonly from: KeyPart & { readonly kind: "custom" | "jwt" };
  readonly max: number;
  readonly default: number;
  readonly cacheMs: number;
}

/** The sources of the numbers of a window. */
export interface WindowSources {
  readonly limit?: LimitSource;
  readonly capacity?: LimitSource;
}

const EXAMPLE = faultText('{ from: "custom:NAME", max: 1000, default: 100 }');
const MAX_CACHE_SECONDS = 3600;
const DEFAULT_CACHE_SECONDS = 60;

/** Returns the schema of a whole number from `min` to `max`, or of its source. */
export function numberOrSource(min: number, max: number) {
  const allowed = faultText(() => `a whole number from ${min} to ${max}, or ${EXAMPLE}`);
  const number = integer(min, max, allowed);
  const source = sourceSchema(max);
  return v.pipe(
    v.custom<number | LimitSourceInput>((value) => isRecord(value) || v.is(number, value), allowed),
    v.lazy<v.GenericSchema<number | LimitSourceInput, number | LimitSource>>((value) =>
      typeof value === "number" ? number : source,
    ),
  );
}

function sourceSchema(max: number) {
  return v.pipe(
    fields(
      {
        from: parsedText(parseFrom, faultText('"custom:NAME", "jwt:CLAIM"')),
        max: integer(1, max),
        default: integer(0, max),
        cacheFor: v.optional(
          parsed<DurationInput, number>(
            (value) => (value === "0s" || value === 0 ? 0 : durationUpTo(MAX_CACHE_SECONDS, value)),
            faultText('"0s" to "1h", or a number of whole seconds from 0 to 3600'),
          ),
        ),
      },
      EXAMPLE,
    ),
    checkOf((source, refuse) => {
      if (Number(source.default) > Number(source.max)) {
        refuse("conflict", faultText("default can be at most max"), "default");
      }
      if (isRecord(source.from) && source.from.kind === "jwt" && source.cacheFor !== undefined) {
        const text = "remove cacheFor: a claim is read from the token of each request";
        refuse("conflict", faultText(text), "cacheFor");
      }
    }),
    v.transform(({ cacheFor = DEFAULT_CACHE_SECONDS, ...source }): LimitSource => {
      return { ...source, cacheMs: cacheFor * 1000 };
    }),
  );
}

function parseFrom(text: string): LimitSource["from"] | undefined {
  const [part, ...others] = parseAlternatives(text) ?? [];
  const isSource = others.length === 0 && (part?.kind === "custom" || part?.kind === "jwt");
  return isSource ? (part as LimitSource["from"]) : undefined;
}

/** Whether a parsed value is the source of a number. */
export function isSource(value: unknown): value is LimitSource {
  return isRecord(value) && isRecord(value.from);
}
