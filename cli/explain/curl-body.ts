import type { CurlArgument, CurlOption } from "./curl-options.ts";

/** The body of a curl command. */
export interface CurlBody {
  readonly isSent: boolean;
  /** Undefined if it is unknown, because it comes from a file or because curl invents a part of it. */
  readonly text: string | undefined;
  /** Whether curl adds the text to the URL (`-G`). */
  readonly isInUrl: boolean;
  readonly contentType: string | undefined;
  readonly accept: string | undefined;
}

const DATA: ReadonlySet<CurlOption> = new Set([
  "data",
  "data-ascii",
  "data-binary",
  "data-raw",
  "data-urlencode",
  "json",
]);
const FORM = "application/x-www-form-urlencoded";

/** Reads the body of a request. Files are not read. @param notes receives what was left out */
export function readBody(read: readonly CurlArgument[], notes: string[]): CurlBody {
  const data = read.filter(({ option }) => DATA.has(option));
  const isJson = data.some(({ option }) => option === "json");
  const isForm = read.some(({ option }) => option === "form" || option === "form-string");
  const isUpload = read.some(({ option }) => option === "upload-file");
  const isInUrl = read.some(({ option }) => option === "get");
  let text: string | undefined = isForm || isUpload ? undefined : "";
  for (const { option, value } of data) {
    const piece = textOf(option, value);
    if (piece === undefined) text = undefined;
    else if (text !== undefined) {
      text += text !== "" && option !== "json" ? `&${piece}` : piece;
    }
  }
  const isSent = data.length > 0 || isForm || isUpload;
  if (isSent && text === undefined) {
    notes.push(
      isInUrl
        ? "The data of a file (@file) is missing in the URL, because files are not read."
        : "The body is unknown, because files are not read and forms are not built. Only functions in custom that read it and rules with a cost of body:bytes depend on it.",
    );
  }
  return {
    isSent,
    text,
    isInUrl,
    contentType: contentTypeOf(isJson, isForm, data.length > 0 && !isInUrl),
    accept: isJson ? "application/json" : undefined,
  };
}

function contentTypeOf(isJson: boolean, isForm: boolean, isData: boolean): string | undefined {
  if (isJson) return "application/json";
  if (isForm) return "multipart/form-data; boundary=------------------------0000000000000000";
  return isData ? FORM : undefined;
}

/** @returns undefined for the content of a file */
function textOf(option: CurlOption, value: string): string | undefined {
  if (option === "data-raw") return value;
  if (option === "data-urlencode") return encodedPair(value);
  return value.startsWith("@") ? undefined : value;
}

/**
 * Encodes a parameter as `--data-urlencode` does: `text`, `=text`, `name=text`, or the name of a file after
 * `@` or `name@`.
 *
 * @returns undefined for the content of a file
 */
export function encodedPair(value: string): string | undefined {
  const at = /[=@]/.exec(value);
  if (!at) return encode(value);
  if (at[0] === "@") return undefined;
  const name = value.slice(0, at.index);
  return `${name}${name && "="}${encode(value.slice(at.index + 1))}`;
}

function encode(text: string): string {
  return encodeURIComponent(text)
    .replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll("%20", "+");
}
