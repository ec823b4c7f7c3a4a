export function unframed(s){return s}
