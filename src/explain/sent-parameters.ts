import type { CanonicalRequest } from "../request/canonical-request.ts";
import { forEachParameter } from "../request/sent-values.ts";

/** The values of one query parameter. */
interface SentParameter {
  /** The first values, encoded. */
  readonly values: string[];
  count: number;
}

/** The maximum number of values of one parameter that are kept. */
export const MAX_VALUES = 5;

/** The parameters of requests that are being explained. Hundreds of conditions may read the same query. */
const parameters = new WeakMap<CanonicalRequest, ReadonlyMap<string, SentParameter>>();

/** Returns the query parameters of a request by their names, as the client has spelt the names. */
export function sentParameters(request: CanonicalRequest): ReadonlyMap<string, SentParameter> {
  const known = parameters.get(request);
  if (known) return known;
  const read = new Map<string, SentParameter>();
  forEachParameter(request.search, (name, value) => {
    const parameter = read.get(name) ?? { values: [], count: 0 };
    read.set(name, parameter);
    parameter.count += 1;
    if (parameter.values.length < MAX_VALUES) parameter.values.push(value);
  });
  parameters.set(request, read);
  return read;
}
