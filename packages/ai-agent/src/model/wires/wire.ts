/**
 * A wire: one API of model providers, for example Chat Completions. Each is a folder beside this
 * file; `index.ts` lists them.
 */
import type { WireName } from '@sandlot/shared/account/models-api'
import type { SetIn } from '@sandlot/shared/chat/reasons'
import type { JsonObject } from '../json.ts'
import type { ModelAnswer, ModelChunk, ModelRequest } from '../model.ts'
import type { Profile } from '../profiles.ts'

export interface BodyOptions {
  model: string
  streaming: boolean
  profile: Profile
  /** The level of thought to ask for, one of the profile's; absent: the model's own. */
  effort?: string | undefined
  /** Tokens that the model holds, request and answer together, where that is known. */
  window?: number | undefined
  /** Names, from `learn`, of all that this endpoint turned out not to take. */
  refused: ReadonlySet<string>
}

/** Feed parsed events; it hands out pieces to show at once, and the answer at the end. */
export interface AnswerReader {
  /** The provider has said how the answer ended. Something may still follow, such as usage. */
  readonly finished: boolean
  /** It is finished, and nothing that has come since speaks against it. */
  readonly quiet: boolean
  /** The protocol has nothing more to say, also where the connection stays open. */
  readonly over: boolean
  /**
   * Adds a parsed event, or a whole body. Ignores what it does not know. Throws `ModelError` for a
   * failure that only this wire can know. `event`: the name in the stream's `event:` line, empty
   * without one.
   */
  push(chunk: JsonObject, event: string): void
  /**
   * True for a chunk that brings a piece and nothing else: no end, no failure. `exact` where it has
   * arguments that are no text, whose numbers must keep their digits.
   */
  isPiece(chunk: unknown): boolean | 'exact'
  /**
   * Throws `ModelError` where a whole body, which was pushed, is no answer of this wire. `setIn`:
   * see `ErrorContext`.
   */
  checkWhole(body: unknown, setIn: SetIn | undefined): void
  /** Hands out what was held back. Nothing follows. */
  end(): void
  /** The answer as it stands. */
  finish(): ModelAnswer
}

export interface Wire {
  readonly name: WireName
  /** The path to post to, below the base URL, for example `/chat/completions`. */
  path(baseUrl: URL): string
  /** Headers that carry the key, which is not empty. By lower-case names. */
  headers(apiKey: string, baseUrl: URL): Record<string, string>
  /** Others that this wire needs, also without a key. `body`: of the request, if it has one. */
  otherHeaders?(body: JsonObject, refused: BodyOptions['refused']): Record<string, string>
  /** The body of a request. The same request gives the same bytes. */
  body(request: ModelRequest, options: BodyOptions): JsonObject
  reader(onPiece: (piece: ModelChunk) => void, profile: Profile): AnswerReader
  /**
   * Looks for what to send otherwise from now on, after the endpoint refused `body`, which is of
   * `request`, with `words`: returns a name for `BodyOptions.refused`, or undefined where nothing
   * can be sent otherwise.
   */
  learn(words: string, body: JsonObject, options: BodyOptions, request: ModelRequest): string | undefined
}
