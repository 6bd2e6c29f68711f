// asv's pages print the beginning of a commit's id; ours have names, such as transformers==4.38.2.
$(function () {  // once asv's own scripts have set up $.asv
    "use strict";
    var names = {"0db9814e03a4e81894682a3c30509347adb47e06": "torch==2.15.0", "2228d7a8e36dbd390badb6140234e574b63f0017": "accelerate==0.34.2", "30fa9f2e7b5be84ab2af02f56bccbdd141f241b7": "peft==0.21.2", "4ddccd283313880a61789bbf578d6092e0d50004": "keras-nlp==0.17.0", "55403bc56e9d18c8bffd3ea9be837346747696f1": "transformers==4.57.6", "5b6ae53f13dd426607e7a64f4b58a621905b60d6": "keras-hub==0.32.0", "7d64dc4e49bc020b7c86a7404acca25e3a11517a": "jax==0.12.0.1", "88e5a22317a9ab82abfe47560c4abff8046eecd5": "transformers==5.24.0", "998aec6a85c04fa1b524b1381f408ad67698b581": "keras==3.15.1", "bb1a4cf1118ed3d683602902ffcc4f688a71c80c": "reference==2026-12-01", "bbf2fadca3c18ce1a0c7817a3b83685ad17d3caa": "tensorflow==2.21.0", "c248c7d531ea26f878a9f47c8ad149e92350ecfd": "accelerate==1.15.0", "ded4aa3797b956d5b13bfacdced9854c9d152d24": "keras-cv==0.9.0", "e0f16a8e766f5d251d994a29828603b66de670b9": "diffusers==0.42.1"};  // id to name, filled in when the site is published
    var ids = {};
    Object.keys(names).forEach(function (id) { ids[names[id]] = id; });

    $.asv.get_commit_hash = function (revision) {
        var id = $.asv.main_json.revision_to_hash[revision];
        return names[id] || id;
    };

    // In addresses a release is its id, alone or as a pair "a-b": asv reads nothing else there.
    function address(value) {
        if (ids[value]) {
            return ids[value];
        }
        var first = Object.keys(ids).find(function (name) {
            return value.indexOf(name + "-") === 0 && ids[value.slice(name.length + 1)];
        });
        return first ? ids[first] + "-" + ids[value.slice(first.length + 1)] : value;
    }

    var format = $.asv.format_hash_string;
    $.asv.format_hash_string = function (info) {
        if (info.params && info.params.commits) {
            info = $.extend(true, {}, info);
            info.params.commits = info.params.commits.map(address);
        }
        return format(info);
    };
});
