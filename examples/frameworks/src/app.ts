/** Stands for the app behind Weir. */
export async function app(request: Request): Promise<Response> {
  const { pathname } = new URL(request.url);
  const headers = new Headers({ "Access-Control-Allow-Origin": "https://site.example" });
  headers.append("Set-Cookie", "a=1");
  headers.append("Set-Cookie", "b=2");
  if (pathname === "/api/echo") {
    const { method, headers } = request;
    return Response.json([method, headers.get("upgrade"), await request.text()]);
  }
  if (pathname !== "/api/stream") return new Response(`app ${pathname}`, { headers });
  // The second part of this body comes a minute later.
  const body = new ReadableStream({
    async start(controller) {
      controller.enqueue(new TextEncoder().encode("first part"));
      await scheduler.wait(60_000);
      controller.close();
    },
  });
  return new Response(body, { headers });
}
