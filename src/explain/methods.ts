/** The methods of HTTP requests that Workers receive. The runtime answers 400 to all others, and to lower case. */
export const METHODS: readonly string[] = (
  "GET HEAD POST PUT DELETE PATCH PURGE OPTIONS TRACE COPY LOCK MKCOL MOVE PROPFIND PROPPATCH SEARCH UNLOCK ACL " +
  "REPORT MKACTIVITY CHECKOUT MERGE MSEARCH NOTIFY SUBSCRIBE UNSUBSCRIBE QUERY"
).split(" ");

/** What is allowed, as the end of a sentence. */
export const ALLOWED_METHODS = `a method that Workers receive, in upper case: ${METHODS.join(", ")}`;
