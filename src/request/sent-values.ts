import type { CanonicalRequest } from "./canonical-request.ts";
import { foldHeaderName, type HeaderFields } from "./header-fields.ts";
import type { NameIndex } from "./name-index.ts";
import { decodeLeniently, parametersIn } from "./request-values.ts";
import {
  ABSENT,
  isClearlyPresent,
  PRESENT,
  type SentValue,
  sentHeader,
  sentParameter,
  UNCLEAR,
} from "./sent-value.ts";

/**
 * The maximum number of values of one parameter that are decoded. If a request repeats a parameter more
 * often, it is unclear whether the parameter is present. Decoding thousands of values would take long.
 */
const MAX_DECODED_VALUES = 16;

/** The parameters of one request that have a certain name. */
interface SentParameters {
  /** The encoded values of the parameters with exactly this name. */
  readonly values: string[];
  /** Whether the query has a parameter with another name that some servers read as this name. */
  hasOtherSpelling: boolean;
}

/**
 * The header fields and the query parameters of one request that conditions use. Each value is read
 * at most once, and the query is split once, even if many rules have conditions on them.
 */
export class SentValues {
  readonly request: CanonicalRequest;
  readonly #queryNames: NameIndex;
  #headers: Map<string, SentValue> | undefined;
  #spellings: Map<string, number> | undefined;
  #query: ReadonlyMap<string, SentParameters> | undefined;
  #parameters: Map<string, SentValue> | undefined;
  #search = "";
  #hasAnyName = false;

  /** @param queryNames the names of all parameters that a condition names */
  constructor(request: CanonicalRequest, queryNames: NameIndex) {
    this.request = request;
    this.#queryNames = queryNames;
  }

  /** @param name the name of the field, in lower case */
  header(name: string): SentValue {
    this.#headers ??= new Map();
    const cached = this.#headers.get(name);
    if (cached) return cached;
    const value = this.#readHeader(name);
    this.#headers.set(name, value);
    return value;
  }

  /** @param name one of the names in the index */
  parameter(name: string): SentValue {
    this.#parameters ??= new Map();
    const cached = this.#parameters.get(name);
    if (cached) return cached;
    const value = this.#readParameter(name);
    this.#parameters.set(name, value);
    return value;
  }

  #readHeader(name: string): SentValue {
    const value = this.request.headers.get(name);
    // Servers may confuse a name with other names only if it contains a separator.
    if (/[^a-z\d]/.test(name)) {
      this.#spellings ??= countSpellings(this.request.headers);
      const count = this.#spellings.get(foldHeaderName(name)) ?? 0;
      if (count > (value === null ? 0 : 1)) return UNCLEAR;
    }
    return value === null ? ABSENT : sentHeader(name, value);
  }

  #readParameter(name: string): SentValue {
    this.#query ??= this.#readQuery();
    if (this.#hasAnyName) return UNCLEAR;
    const sent = this.#query.get(name);
    if (!sent) return ABSENT;
    // Most servers read `;` as a part of a value, and others read it as a separator.
    if (sent.hasOtherSpelling || this.#search.includes(";")) return UNCLEAR;
    const [single = "", ...more] = sent.values;
    if (more.length === 0) return sentParameter(single);
    if (sent.values.length > MAX_DECODED_VALUES) return UNCLEAR;
    return sent.values.every((value) => isClearlyPresent(decodeLeniently(value)))
      ? PRESENT
      : UNCLEAR;
  }

  #readQuery(): ReadonlyMap<string, SentParameters> {
    this.#search = this.request.search;
    this.#hasAnyName = this.request.hasHiddenQuery;
    const query = new Map<string, SentParameters>();
    const parametersOf = (name: string) => {
      const parameters = query.get(name) ?? { values: [], hasOtherSpelling: false };
      query.set(name, parameters);
      return parameters;
    };
    for (const [sent, value] of parametersIn(this.#search)) {
      const names = this.#queryNames.find(sent);
      if (names === this.#queryNames.all) {
        this.#hasAnyName = true;
        break;
      }
      for (const name of names) {
        if (name === sent) parametersOf(name).values.push(value);
        else parametersOf(name).hasOtherSpelling = true;
      }
    }
    return query;
  }
}

/** Counts the header fields whose names servers may take for the same name. */
function countSpellings(headers: HeaderFields): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of new Set(headers.keys())) {
    const spelling = foldHeaderName(name);
    counts.set(spelling, (counts.get(spelling) ?? 0) + 1);
  }
  return counts;
}
