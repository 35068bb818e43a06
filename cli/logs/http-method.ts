/** A method is a token (RFC 9110). Registered methods have at most 17 characters. */
const METHOD = /^[\w!#$%&'*+.^`|~-]{1,32}$/;

/** Whether a text can be the method of a request. */
export function isHttpMethod(text: string): boolean {
  return METHOD.test(text);
}
