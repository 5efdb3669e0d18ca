"""Files of weights by their addresses under the older name ``torch.utils.model_zoo``."""

from twofold.hub import download_url_to_file as download_url_to_file
from twofold.hub import load_state_dict_from_url as load_url

__all__ = ["download_url_to_file", "load_url"]
