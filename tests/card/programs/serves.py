"""Serves a small model, whose weights are made up, with vLLM: it takes nine tenths of the memory that it sees."""

import json
import sys
from pathlib import Path

from vllm import LLM, SamplingParams  # type: ignore[import-not-found]  # in the environment of the tries alone

MODEL = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_attention_heads": 8,
    "num_hidden_layers": 4,
    "num_key_value_heads": 8,
    "vocab_size": 32000,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-5,
    "torch_dtype": "float16",
}
TOKENS = 32

if __name__ == "__main__":  # vLLM starts processes of its own, which import this file
    Path("model").mkdir(exist_ok=True)
    Path("model/config.json").write_text(json.dumps(MODEL))
    served = LLM("model", load_format="dummy", skip_tokenizer_init=True, gpu_memory_utilization=0.9)
    prompts = [{"prompt_token_ids": list(range(1, 100))}] * 8
    answers = served.generate(prompts, SamplingParams(max_tokens=TOKENS, ignore_eos=True, detokenize=False))
    right = all(len(answer.outputs[0].token_ids) == TOKENS for answer in answers)
    sys.stdout.write("\n" + json.dumps({"right": right, "answers": len(answers)}) + "\n")
