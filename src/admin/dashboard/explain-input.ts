import { parseAddress } from "../../config/address.ts";
import type { DescribedRequest } from "../../explain/explanation.ts";
import { check, invalidInput } from "../api-input.ts";
import { ExplainBody } from "../api-schemas.ts";

/** What an operator has entered to describe a request. */
export interface DescribedFields {
  readonly method: string;
  readonly url: string;
  /** One header field in each line. */
  readonly headers: string;
  readonly ip: string;
  readonly country: string;
  readonly asn: string;
}

/**
 * Reads the description of a request.
 *
 * @param origin the origin of the dashboard, for a URL that is only a path
 * @throws {OperationError} if a field has a value that is not allowed. The message contains none of the values
 */
export function readDescription(
  { method, url, headers, ip, country, asn }: DescribedFields,
  origin: string,
): DescribedRequest {
  const lines = fieldsIn(headers);
  if (ip !== "" && !parseAddress(ip)) {
    throw invalidInput([
      { path: "IP address", message: "must be an address, such as 203.0.113.7 or 2001:db8::7." },
    ]);
  }
  if (ip !== "") lines.set("cf-connecting-ip", ip);
  const number = /^(?:AS)?(\d{1,10})$/i.exec(asn)?.[1];
  if (asn !== "" && number === undefined) {
    throw invalidInput([{ path: "ASN", message: "must be a number, such as 13335." }]);
  }
  if (country !== "" && !/^[a-z][a-z\d]$/i.test(country)) {
    throw invalidInput([
      { path: "Country", message: "must be a code of two letters, such as DE." },
    ]);
  }
  const described = check(ExplainBody, {
    method: (method || "GET").toUpperCase(),
    url: url.startsWith("/") && !url.startsWith("//") ? origin + url : url,
    headers: Object.fromEntries(lines),
    cf: {
      ...(country !== "" && { country: country.toUpperCase() }),
      ...(number !== undefined && { asn: Number(number) }),
    },
  });
  const { headers: sent = {}, cf = {} } = described;
  return { method: described.method, url: described.url, headers: sent, cf };
}

/** Returns the header fields in some lines. A field that was entered twice has both values, as in HTTP. */
function fieldsIn(text: string): Map<string, string> {
  const fields = new Map<string, string>();
  for (const [index, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    const colon = line.indexOf(":");
    if (colon < 1) {
      const message = `must have a name and a colon in each line, as in x-api-key: abc. Line ${index + 1} has none.`;
      throw invalidInput([{ path: "Header fields", message }]);
    }
    const name = line.slice(0, colon).trim().toLowerCase();
    const value = line.slice(colon + 1).trim();
    const before = fields.get(name);
    const separator = name === "cookie" ? "; " : ", ";
    fields.set(name, before === undefined ? value : before + separator + value);
  }
  return fields;
}
