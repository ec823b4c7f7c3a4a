/** Sentences that the demo model uses in several places. */

export const LABEL = '**I am the demo model: no AI model is configured.**'

const SUGGESTIONS = [
  '`demo`: a short tour of everything',
  '`make a file hello.py that prints the primes below 50 and run it`',
  '`create a file called test.txt with content "hello"`',
  '`what is in my workspace?`',
  '`read hello.py`',
  '`replace 50 with 100 in hello.py`',
  '`search for TODO`',
  '`run df -h`, or any other command',
]

/** Told once in a session, and whenever the demo model does not understand. */
export const HOW_TO_CONFIGURE =
  'To talk to a real model, set `OPENAI_MODEL` (and `OPENAI_BASE_URL`, `OPENAI_API_KEY` as needed) and restart Sandlot.'

export function suggestions(): string {
  return SUGGESTIONS.map((line) => `- ${line}`).join('\n')
}
