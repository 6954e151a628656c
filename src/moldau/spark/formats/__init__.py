"""Keys and values as typed columns: binary, string, JSON and Avro, decoded to Arrow and encoded again."""

from moldau.spark.formats.choices import DEFAULT_FORMAT, decoder_of, encoder_of, json_decoder, wants_inference
from moldau.spark.formats.interface import Decoded, Decoder, Encoder, EncodingFailed, FormatError, Side
from moldau.spark.formats.json.inference import Inferred, infer_json

__all__ = [
    "DEFAULT_FORMAT",
    "Decoded",
    "Decoder",
    "Encoder",
    "EncodingFailed",
    "FormatError",
    "Inferred",
    "Side",
    "decoder_of",
    "encoder_of",
    "infer_json",
    "json_decoder",
    "wants_inference",
]
