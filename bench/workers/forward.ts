import { bindings } from "./bindings.ts";

/** To the origin and back, with no more work than a Worker has that only forwards. */
export function forward(request: Request): Promise<Response> {
  const { url } = request;
  const path = url.slice(url.indexOf("/", url.indexOf("//") + 2));
  return fetch(new Request(bindings.ORIGIN_URL + path, request));
}
