import { bindings } from "./bindings.ts";

/** Forwards a request to the origin, with as little work as possible. */
export function forward(request: Request): Promise<Response> {
  const { url } = request;
  const path = url.slice(url.indexOf("/", url.indexOf("//") + 2));
  return fetch(new Request(bindings.ORIGIN_URL + path, request));
}
