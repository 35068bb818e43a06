export default {
  fetch(request) {
    const { pathname } = new URL(request.url);
    return Response.json({
      message: "Hello from the demo origin.",
      method: request.method,
      pathname,
    });
  },
} satisfies ExportedHandler;
