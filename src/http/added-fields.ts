import { exposeFields } from "./cors.ts";

/**
 * Returns a copy of a response with more header fields, which pages of other origins may read if
 * they may read the response. Returns the same object if its fields cannot be changed.
 *
 * @param add adds the fields, and returns their names
 */
export function withAddedFields(
  request: Request,
  response: Response,
  add: (headers: Headers) => readonly string[],
): Response {
  // `new Response` throws for a status above 599 or below 200, which an origin may send, and for the
  // status 0 of `Response.error()`. So Weir adds no fields to such a response, except to WebSockets.
  const { status, webSocket } = response;
  if (status > 599 || (status < 200 && !webSocket)) return response;
  // The headers of a fetched response are immutable. The headers of a copy with the same body can
  // be changed.
  const copy = new Response(response.body, response);
  exposeFields(request, copy.headers, add(copy.headers));
  return copy;
}
